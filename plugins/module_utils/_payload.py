# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How Python loads us from Ansible's payload, a zip file of sources. PRIVATE to the collection.

Before Python loads a module it asks zipimport for the name of its file, and to answer, zipimport compiles the module;
then it compiles it again. We have so many modules that this was a fifth of what a run costs a host.
"""

from __future__ import annotations

import sys
import zipimport


class _Importer(zipimport.zipimporter):
    """Knows the name of a file without its code."""

    def get_filename(self, fullname: str) -> str:
        """The file that a module of the payload comes from."""
        leaf = fullname.rpartition(".")[2]
        return f"{self.archive}/{self.prefix}{leaf}{'/__init__.py' if self.is_package(fullname) else '.py'}"


def compile_once() -> None:
    """Load what is imported from now on with one compilation. Elsewhere than in a payload nothing changes."""
    loader = getattr(sys.modules[__name__].__spec__, "loader", None)
    # The agent, a zip file too, has compiled modules beside it.
    if "ansible.module_utils.basic" not in sys.modules or not isinstance(loader, zipimport.zipimporter):
        return
    sys.path_hooks.insert(0, _Importer)
    for place, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimport.zipimporter):
            del sys.path_importer_cache[place]
