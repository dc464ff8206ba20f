# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lines of sysctl.d and tmpfiles.d with which others than nearmetal set values at each boot. PRIVATE."""

from __future__ import annotations

from typing import Dict, Iterator, List, NamedTuple, Tuple

from .host import Host
from .native_files import is_nearmetal_file

# In the order in which a file hides one of the same name (sysctl.d(5), tmpfiles.d(5), udev(7), systemd.link(5)).
ROOTS = ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib")
LIMIT = 65536  # bytes that are read of a file


class BootLine(NamedTuple):
    """One value that a file sets at boot."""

    file: str  # its path
    name: str  # net.core.somaxconn in sysctl.d; a path in /sys or a pattern of such paths in tmpfiles.d
    value: str
    adds: bool = False  # w+ of tmpfiles.d: it may hold beside an earlier line for its path; 252 leaves it out


def files(host: Host, folder: str, suffix: str, after: str = "") -> List[Tuple[str, str]]:
    """Name and path of the files of others, by name; one in an earlier folder hides one of its name in a later one.

    `folder` is below each of the roots. Only files whose names sort behind `after` are given.
    """
    paths: Dict[str, str] = {}
    for root in ROOTS:
        for name in host.names(f"{root}/{folder}"):
            if name.endswith(suffix) and name > after:
                paths.setdefault(name, f"{root}/{folder}/{name}")
    return [(name, path) for name, path in sorted(paths.items()) if not is_nearmetal_file(path)]


def sysctl_lines(host: Host, after: str = "") -> Iterator[BootLine]:
    """The settings in the order in which systemd-sysctl reads them: of two for one key the last one counts.

    Only files whose names sort behind `after` are read.
    """
    for _name, path in files(host, "sysctl.d", ".conf", after):
        yield from sysctl_lines_of(host, path)


def sysctl_lines_of(host: Host, path: str) -> Iterator[BootLine]:
    """The settings of one such file."""
    for line in _lines(host, path):
        key, sign, value = line.lstrip("-").partition("=")
        if sign:
            yield BootLine(path, dotted(key.strip()), value.strip())


def dotted(key: str) -> str:
    """A kernel parameter's name with dots; the first separator of a key says how it is written (sysctl.d(5))."""
    slashed = "/" in key and "." not in key.partition("/")[0]
    return key.translate(str.maketrans("./", "/.")) if slashed else key


def tmpfiles_lines(host: Host) -> Iterator[BootLine]:
    """The lines that write to files, in the order in which they are read: of two for one path the first one counts."""
    for _name, path in files(host, "tmpfiles.d", ".conf"):
        for line in _lines(host, path):
            kind, *fields = line.split(None, 6)
            bare = kind.rstrip("!+-=~^$")
            if (bare in ("w", "F") or (bare == "f" and "+" in kind)) and len(fields) == 6:
                value = fields[5].strip("\"'").replace("\\n", "")
                yield BootLine(path, fields[0].strip("\"'"), value, bare == "w" and "+" in kind)


def _lines(host: Host, path: str) -> Iterator[str]:
    """Each line of a file that is no comment."""
    for line in map(str.strip, (host.text(path, limit=LIMIT) or "").splitlines()):
        if line and not line.startswith(("#", ";")):
            yield line
