# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A captured host, read from memory: nothing of a stranger's capture becomes a file. PRIVATE to the collection."""

from __future__ import annotations

import posixpath
from typing import Any, Dict, List, Mapping, Optional, Set

from .._error import NearmetalError
from .._host.host import WritableHost
from .capture import record_key

# Code that opens files itself finds none here: no system has this folder (Debian Policy, 9.2.3), and a plan makes none.
_ROOT = "/nonexistent/captured"


class CapturedHost(WritableHost):
    """The files, links and drivers' answers of a capture whose form was checked.

    Raises NearmetalError for a link at the place of a file or a folder.
    """

    def __init__(self, captured: Mapping[str, Any]) -> None:
        super().__init__(_ROOT)
        self._machine: Optional[str] = captured["machine"]
        self._drivers: Mapping[str, Mapping[str, str]] = captured["drivers"]
        self._links: Mapping[str, str] = captured["links"]
        self._folders: Dict[str, Set[str]] = {"/": set()}  # path → the names in it
        for path in captured["folders"]:
            self._add_folder(path)
        for path in (*captured["files"], *self._links):
            folder, name = posixpath.split(path)
            self._add_folder(folder)
            self._folders[folder].add(name)
        files: Mapping[str, str] = captured["files"]
        self._files = {path: text for path, text in files.items() if path not in self._folders}
        self._read_only = self._files.keys() & set(captured["read_only"])
        twice = next((path for path in self._links if path in self._files or path in self._folders), None)
        if twice is not None:
            raise NearmetalError(
                "the capture contradicts itself: the path of a symbolic link is also that of a file or a folder"
            )

    def is_root(self) -> bool:
        """A capture is planned as root would plan it; nothing is written."""
        return True

    def boot_id(self) -> str:
        """A capture has none, and no original of an earlier boot."""
        return "captured"

    def machine(self) -> Optional[str]:
        return self._machine

    def names(self, path: str) -> List[str]:
        return sorted(self._folders.get(self._place(path), ()))

    def link(self, path: str) -> Optional[str]:
        return self._links.get(self._unfollowed(path))

    def exists(self, path: str) -> bool:
        place = self._unfollowed(path)
        return place in self._files or place in self._folders or place in self._links

    def fixed(self, path: str) -> bool:
        return self._place(path) in self._read_only

    def writable(self, path: str) -> bool:
        """Whether it exists: to root a file's mode is no obstacle."""
        place = self._place(path)
        return place in self._files or place in self._folders

    def _bytes(self, path: str, limit: int, records: bool) -> Optional[bytes]:
        text = self._files.get(self._place(path))
        return text[:limit].encode("utf-8", "replace")[:limit] if text is not None else None

    def _driver(self, device: str, record: bytes) -> bytes:
        answer = self._drivers.get(device, {}).get(record_key(record))
        if answer is None:
            raise OSError(95, "not in the capture", device)
        return bytes.fromhex(answer)

    def _add_folder(self, path: str) -> None:
        """Add a folder, and those above it."""
        name = ""
        while path not in self._folders:
            self._folders[path] = {name} if name else set()
            path, name = posixpath.split(path)
        if name:
            self._folders[path].add(name)

    def _unfollowed(self, path: str) -> str:
        """The real path of what has this name, be it a link."""
        folder, name = posixpath.split(path)
        return posixpath.join(self._place(folder), name)

    def _place(self, path: str) -> str:
        """The real path; an empty text where links lead in a loop."""
        found = self._resolved(path)
        return "" if found is None else found or "/"

    def _target(self, place: str) -> Optional[str]:
        return self._links.get(place)
