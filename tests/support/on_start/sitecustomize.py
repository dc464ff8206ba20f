# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read by each Python that a test of the controller starts: no two runs of Ansible pack or compile the same module.

Ansible packs a module with all that it imports once per run, into a folder of the run. Here that folder is a link to
one that all runs with the same sources share: PAYLOADS_PACKED.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, Iterable, Iterator, Optional, Sequence

# The parts of a collection that decide the content of a payload.
PACKED = ("plugins/modules", "plugins/module_utils", "meta")


def _files(places: Iterable[str]) -> Iterator[Path]:
    for place in places:
        for collection in sorted(Path(place).glob("ansible_collections/*/*")):
            for part in PACKED:
                for folder, folders, names in os.walk(collection / part, followlinks=True):
                    folders.sort()
                    yield from (Path(folder, name) for name in sorted(names) if name.endswith((".py", ".yml")))


def _content(places: Iterable[str]) -> str:
    import ansible.release

    digest = hashlib.sha256(ansible.release.__version__.encode())
    for path in _files(places):
        digest.update(str(path).rpartition("ansible_collections")[2].encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


class _Finder(MetaPathFinder):
    def find_spec(self, name: str, path: Optional[Sequence[str]], target: Any = None) -> Optional[ModuleSpec]:
        """None; before Ansible loads what packs modules, link its folder."""
        if name == "ansible.executor.module_common":
            sys.meta_path.remove(self)
            self._link()
        return None

    def _link(self) -> None:
        from ansible import constants

        shared = Path(os.environ["PAYLOADS_PACKED"])
        if os.access(shared, os.W_OK):
            folder = shared / _content(constants.COLLECTIONS_PATHS)
            folder.mkdir(exist_ok=True)
            with contextlib.suppress(FileExistsError):
                Path(constants.DEFAULT_LOCAL_TMP, "ansiballz_cache").symlink_to(folder)


if "PAYLOADS_COMPILED" in os.environ:
    import compiled_once

    compiled_once.install()
if "PAYLOADS_PACKED" in os.environ:
    sys.meta_path.insert(0, _Finder())
