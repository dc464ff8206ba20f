# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading a capture, with the size and type of each part checked, and the host in it. PRIVATE to the collection.

A capture comes from somebody else. Its values are checked by the parsers, like those of any host.
"""

from __future__ import annotations

import os
import posixpath
import re
from itertools import accumulate
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Set

from .._error import NearmetalError
from .._host.host import WritableHost
from .._parse import json_text
from .._words import printable, shown
from .allowed import LONGEST_FILE
from .capture import FORMAT, record_key

# A host of 1,920 CPUs gives some 46,000 paths and 6 MiB.
LARGEST = 16 * 1024 * 1024
MOST_PATHS = 65536

_PATH = re.compile(r"(?:/[A-Za-z0-9_.:@+-]{1,255}){1,40}", re.ASCII)
_LONGEST_PATH = 4095
_DOTS = frozenset((".", ".."))
_DEVICE = re.compile(r"[^/\s\0]{1,15}")
_QUESTION = re.compile(r"(?:[0-9a-f]{2}){4,16}/([0-9]{1,7})", re.ASCII)
_HEX = re.compile(r"(?:[0-9a-f]{2})*", re.ASCII)
_SHORT = 64  # characters of a machine's name, a version, a date
_LONGEST_OPTION = 4096

_PARTS = {"files": dict, "links": dict, "folders": list, "read_only": list, "drivers": dict, "wanted": dict}
_FILE = f"isn't a text of at most {LONGEST_FILE >> 20} MiB"
# Code that opens files itself finds none here: no system has this folder (Debian Policy, 9.2.3), and a plan makes none.
_ROOT = "/nonexistent/captured"


def read(path: str) -> Dict[str, Any]:
    """A capture, every part of it checked; `-` is standard input. Raises NearmetalError when it isn't one."""
    name = "standard input" if path == "-" else path
    try:
        with open(0 if path == "-" else path, "rb") as stream:
            data = stream.read(LARGEST + 1)
    except OSError as error:
        raise NearmetalError(f"{name}: {os.strerror(error.errno or 0)}") from None
    if len(data) > LARGEST:
        raise NearmetalError(f"{name} isn't a capture: it is larger than {LARGEST >> 20} MiB, and no capture is")
    try:
        captured = json_text.parse(data.decode("utf-8"))
    except ValueError as error:
        reason = f"it isn't JSON ({printable(str(error))})" if data.strip() else "it is empty"
        raise NearmetalError(f"{name} isn't a capture: {reason}: make one with `nearmetal capture`") from None
    wrong = next(_wrong(captured), "")
    if wrong:
        raise NearmetalError(f"{name} isn't a capture ({wrong}): make one with `nearmetal capture`")
    found: Dict[str, Any] = captured
    return found


def _wrong(captured: Any) -> Iterator[str]:
    """Why the data isn't a capture, or an empty text; each check relies on those before it."""
    if not isinstance(captured, dict) or "format" not in captured:
        yield "it is other JSON"
        return
    if captured["format"] != FORMAT or captured["format"] is True:
        yield f"its format isn't {FORMAT}"
        return
    for part, kind in _PARTS.items():
        if not isinstance(captured.get(part), kind):
            yield f"a part of it is missing: {part}"
            return
    about = {name: captured.get(name) for name in ("captured", "nearmetal", "machine")}
    if about["machine"] is None:
        del about["machine"]
    for name, text in about.items():
        if not isinstance(text, str) or len(text) > _SHORT:
            yield f"it doesn't say when and where it was made: {name} is {shown(text)}"
    files, links = captured["files"], captured["links"]
    yield from _wrong_paths([*files, *links, *captured["folders"], *captured["read_only"]], links)
    yield from (f"the file {shown(path)} {_FILE}" for path, text in files.items() if not _is_file(text))
    yield from (f"the link {shown(path)} leads to no path" for path, target in links.items() if not _is_link(target))
    for device, answers in captured["drivers"].items():
        yield from _wrong_driver(device, answers)
    for concern, options in captured["wanted"].items():
        if not isinstance(options, dict) or not _plain(options):
            yield f"what is wanted of {shown(concern)} isn't a mapping of options"


def _wrong_paths(paths: Sequence[Any], links: Dict[str, Any]) -> Iterator[str]:
    if len(paths) > MOST_PATHS:
        yield f"it has {len(paths)} paths, more than {MOST_PATHS}"
        return
    for path in paths:
        fits = isinstance(path, str) and len(path) <= _LONGEST_PATH and _PATH.fullmatch(path)
        if not fits or not _DOTS.isdisjoint(path.split("/")):
            yield f"{shown(path)} isn't a path that a capture has"
            return
    for path in paths:
        below = next((parent for parent in accumulate(path.split("/")[:-1], "{}/{}".format) if parent in links), None)
        if below is not None:
            yield f"{shown(path)} lies below the symbolic link {shown(below)}"


def _is_file(text: Any) -> bool:
    return isinstance(text, str) and len(text) <= LONGEST_FILE and "\0" not in text


def _is_link(target: Any) -> bool:
    """Whether the target can be the text of a symbolic link; a lone surrogate has no bytes."""
    if not isinstance(target, str) or not 0 < len(target) <= _LONGEST_PATH or "\0" in target:
        return False
    return len(target.encode("utf-8", "ignore")) == len(target.encode("utf-8", "surrogatepass")) <= _LONGEST_PATH


def _wrong_driver(device: str, answers: Any) -> Iterator[str]:
    if not _DEVICE.fullmatch(device) or not isinstance(answers, dict):
        yield f"the answers of the driver of {shown(device)} aren't a mapping"
        return
    for question, answer in answers.items():
        match = _QUESTION.fullmatch(question)
        whole = match is not None and isinstance(answer, str) and len(answer) == 2 * int(match[1])
        if not whole or not _HEX.fullmatch(answer):
            yield f"the answer of the driver of {shown(device)} to {shown(question)} isn't as long as its question"


def _plain(value: Any) -> bool:
    """Whether the value is made of tables, lists and short scalars, as options are."""
    if isinstance(value, dict):
        return all(len(name) <= _SHORT and _plain(item) for name, item in value.items())
    if isinstance(value, list):
        return all(map(_plain, value))
    return not isinstance(value, str) or len(value) <= _LONGEST_OPTION


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
