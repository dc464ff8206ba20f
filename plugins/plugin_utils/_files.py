# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of the report directory, which only their owner may read. PRIVATE to the collection."""

from __future__ import annotations

import errno
import os
import re
from contextlib import contextmanager, suppress
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Pattern, Tuple, TypeVar

from ..module_utils._error import NearmetalError
from ..module_utils._parse import json_text

_Made = TypeVar("_Made")
_UNSAFE_IN_A_NAME = re.compile(r"[^A-Za-z0-9_.-]")
_MOST_READ = 20  # files per host; file names of different hosts may be the same
ELSEWHERE = (
    "name another directory with NEARMETAL_REPORT_DIRECTORY, or report_directory below [nearmetal] in ansible.cfg"
)


def short_path(source: str) -> str:
    """A path as a user types it in the current folder."""
    if not os.path.isabs(source):
        return source
    relative = os.path.relpath(source)
    return source if relative.startswith("..") else relative


def brief(paths: Iterable[str]) -> str:
    """`nearmetal-report/report.json report.md`, the directory once."""
    names = list(paths)
    return f"{short_path(os.path.abspath(os.path.dirname(names[0])))}/ {' '.join(map(os.path.basename, names))}"


def file_name(host: str) -> str:
    """The host's part in the name of a file."""
    return _UNSAFE_IN_A_NAME.sub("_", host)[:100]


@contextmanager
def writing(what: str) -> Iterator[None]:
    """Within this context an error of the system becomes a NearmetalError, which says that `what` can't be written."""
    try:
        yield
    except OSError as error:
        raise NearmetalError(f"{what} can't be written: {error.strerror}; {ELSEWHERE}") from None


def make_folder(path: str) -> None:
    """Make the folder of a file. Raises OSError when it can't be made or written to."""
    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def write(path: str, text: str) -> str:
    """Write a file at once; its path. Raises OSError."""
    write_together([(path, text)])
    return path


def write_together(texts: Iterable[Tuple[str, str]], before_exchange: Callable[[], object] = lambda: None) -> List[str]:
    """Write each path's text; the paths. Where there is no room for all, none of the files changes. Raises OSError.

    `before_exchange` is called when all are written, and none is in its place yet.
    """
    written: Dict[str, str] = {}
    try:
        for path, text in texts:
            beside = f"{path}.{os.getpid()}.new"
            # O_EXCL: nobody can put a link there in a shared directory.
            handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            written[beside] = path
            with os.fdopen(handle, "w", encoding="utf-8", errors="replace", newline="\n") as stream:
                stream.write(text)
        before_exchange()
        paths = list(written.values())
        for beside, path in list(written.items()):
            os.replace(beside, path)
            del written[beside]
        return paths
    finally:
        for beside in written:
            os.unlink(beside)


def try_folder(folder: str, needed: int = 0) -> None:
    """Make a folder, write a file of 64 KiB there for a moment, and see if it has room for so many bytes.

    Raises OSError. A file system that doesn't say its size counts as large enough.
    """
    os.makedirs(folder, mode=0o700, exist_ok=True)
    os.unlink(write(os.path.join(folder, f"try.{os.getpid()}"), " " * 65536))  # workers of Ansible may do so at once
    found = os.statvfs(folder)
    if found.f_blocks and found.f_bavail * found.f_frsize < needed:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def require_folder(what: str, folder: str, needed: int = 0, elsewhere: str = ELSEWHERE) -> None:
    """Raise NearmetalError, which names the setting, where files of so many bytes couldn't be written."""
    try:
        try_folder(folder, needed)
    except OSError as error:
        raise NearmetalError(f"{what}: can't write in {folder}: {error.strerror}; {elsewhere}") from None


def append(path: str, line: bytes, flags: int = 0) -> None:
    """Add a line, on disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | flags, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        # A line that was cut, when an earlier run was killed, must not swallow this one.
        cut = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        data = (b"\n" if cut else b"") + line
        if os.write(descriptor, data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_json(path: str, most: int) -> Any:
    """The content of a file. Raises OSError, or ValueError if it has more than `most` bytes or isn't JSON."""
    with open(path, "rb") as stream:
        data = stream.read(most + 1)
    if len(data) > most:
        raise ValueError(f"{path} is too large")
    return json_text.parse(data.decode("utf-8"))


def made_of(path: str, most: int, make: Callable[[Any], _Made]) -> Optional[_Made]:
    """What is made of the JSON in a file; None of a file that is damaged, or of which nothing can be made."""
    try:
        return make(read_json(path, most))
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError, OverflowError):
        return None


def latest(folder: str, pattern: Pattern[str], hosts: Iterable[str]) -> Iterator[Tuple[str, List[str]]]:
    """Each host with its files, the latest first: the groups `host` and `when` of their names."""
    files: Dict[str, List[Tuple[str, str]]] = {}
    with suppress(OSError):
        for match in filter(None, map(pattern.fullmatch, os.listdir(folder))):
            files.setdefault(match["host"], []).append((match["when"], match[0]))
    for host in hosts:
        found = sorted(files.get(file_name(host), ()), reverse=True)[:_MOST_READ]
        yield host, [os.path.join(folder, name) for _when, name in found]
