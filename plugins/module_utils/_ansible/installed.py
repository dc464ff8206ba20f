# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The code that Ansible sent, where the host has it already: compiled, beside the agent. PRIVATE to the collection.

Ansible sends sources, which Python compiles again in each run. On a host with the unit they lie compiled beside the
agent. Only when those were made of the very sources that were sent, by the same version of Python, and nobody but root
can have changed them, they are imported; in all other cases the sources are.
"""

from __future__ import annotations

import os
import pkgutil
import sys
import zipimport
from contextlib import suppress
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from typing import Any, Optional

OURS = "ansible_collections.nearmetal.ec2.plugins.module_utils"


def prefer(root: str = "/") -> bool:
    """Import what isn't imported yet from beside the agent of the host at `root`, if that is the code that was sent."""
    if not isinstance(getattr(sys.modules[OURS], "__loader__", None), zipimport.zipimporter):
        return False  # nothing was sent: these are files, which Python itself keeps compiled
    try:
        pkgutil.get_data(OURS, "_agent/command.py")
    except OSError:
        return False  # a module of facts, which brings no agent
    descriptor = _same(root)
    if descriptor is None:
        return False
    # The file that was looked at, open until the end: another run may put its own in its place meanwhile.
    archive = f"/proc/self/fd/{descriptor}"
    sys.meta_path.append(_Sent(sys.modules[OURS].__path__[0]))
    for name, module in list(sys.modules.items()):
        if f"{name}.".startswith(f"{OURS}.") and hasattr(module, "__path__"):
            module.__path__ = [f"{archive}/{name.replace('.', '/')}"]
    return True


class _Sent:
    """Finds in what was sent what isn't beside the agent: `prove` needs more than the agent does."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def find_spec(self, name: str, _path: "Any" = None, _target: "Any" = None) -> "Optional[ModuleSpec]":
        """Called by Python after all others."""
        if not name.startswith(f"{OURS}."):
            return None
        package = name.rpartition(".")[0][len(OURS) :]
        return PathFinder.find_spec(name, [self._folder + package.replace(".", "/")])


def _same(root: str) -> "Optional[int]":
    """A descriptor of the code beside the agent of the host at `root`; None when it isn't what was sent."""
    # Only now: a module of facts has no use for these.
    from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
    from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.unit import AGENT
    from ansible_collections.nearmetal.ec2.plugins.module_utils._host import bundle, store
    from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost
    from ansible_collections.nearmetal.ec2.plugins.module_utils._version import VERSION

    try:
        descriptor = store.open_file(WritableHost(root), f"{os.path.dirname(AGENT)}/{bundle.cache_name()}")
    except NearmetalError:
        return None
    if descriptor is None:
        return None
    mark = bundle.mark(VERSION)
    with suppress(OSError):  # a broken disk
        if store.is_closed(descriptor) and os.pread(descriptor, len(mark), 0) == mark:
            return descriptor
    os.close(descriptor)
    return None
