# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host whose files are a dictionary, to plan on thousands of hosts without a file system. It can't be written to."""

from __future__ import annotations

import posixpath
import struct
from typing import Dict, List, Mapping, Optional, Set

from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host


class MemoryHost(Host):
    """The files of tests/support/hosts.py; "-> target" is a symbolic link."""

    def __init__(self, files: Mapping[str, str], rings: Mapping[str, List[int]]) -> None:
        super().__init__("/nowhere")
        self._files = files
        self._rings = rings  # NIC → as struct ethtool_ringparam: most and now of rx and tx
        self._folders: Dict[str, Set[str]] = {}
        for path in files:
            name = path
            while name != "/":
                above = posixpath.dirname(name)
                self._folders.setdefault(above, set()).add(posixpath.basename(name))
                name = above

    def names(self, path: str) -> List[str]:
        return sorted(self._folders.get(self._resolved(path), ()))

    def link(self, path: str) -> Optional[str]:
        text = self._files.get(self._beside(path), "")
        return text[3:] if text.startswith("-> ") else None

    def exists(self, path: str) -> bool:
        beside = self._beside(path)
        return beside in self._files or beside in self._folders

    def fixed(self, path: str) -> bool:
        return False

    def _bytes(self, path: str, limit: int, records: bool) -> Optional[bytes]:
        text = self._files.get(self._resolved(path))
        return text.encode()[:limit] if text is not None else None

    def _driver(self, device: str, record: bytes) -> bytes:
        (command,) = struct.unpack_from("=I", record)
        if command != 0x10 or device not in self._rings:  # ETHTOOL_GRINGPARAM
            raise OSError(95, "Operation not supported", device)
        rx_most, tx_most, rx, tx = self._rings[device]
        return struct.pack("=9I", command, rx_most, 0, 0, tx_most, rx, 0, 0, tx)

    def _beside(self, path: str) -> str:
        """The path with the links of its folders followed, but not its own."""
        return posixpath.join(self._resolved(posixpath.dirname(path)), posixpath.basename(path))

    def _resolved(self, path: str) -> str:
        done = "/"
        todo = path.strip("/").split("/")[::-1]
        while todo:
            part = todo.pop()
            if part in ("", "."):
                continue
            if part == "..":
                done = posixpath.dirname(done)
                continue
            current = posixpath.join(done, part)
            text = self._files.get(current, "")
            if text.startswith("-> "):
                todo.extend(text[3:].split("/")[::-1])
                done = "/" if text[3:].startswith("/") else done
            else:
                done = current
        return done
