# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lines of sysctl.d and tmpfiles.d with which others than nearmetal set values at each boot. PRIVATE."""

from __future__ import annotations

from typing import Dict, Iterator, NamedTuple, Tuple

from .host import Host
from .native_files import is_nearmetal_file

# In the order in which a file hides one of the same name (sysctl.d(5), tmpfiles.d(5)).
_ROOTS = ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib")
_LIMIT = 65536  # bytes that are read of a file


class BootLine(NamedTuple):
    """One value that a file sets at boot."""

    file: str  # its path
    name: str  # net.core.somaxconn in sysctl.d; a path in /sys or a pattern of such paths in tmpfiles.d
    value: str


def sysctl_lines(host: Host, after: str = "") -> Iterator[BootLine]:
    """The settings in the order in which systemd-sysctl reads them: of two for one key the last one counts.

    Only files whose names sort behind `after` are read.
    """
    for path, line in _lines(host, "sysctl.d", after):
        key, sign, value = line.lstrip("-").partition("=")
        if sign:
            yield BootLine(path, key.strip().replace("/", "."), value.strip())


def tmpfiles_lines(host: Host) -> Iterator[BootLine]:
    """The lines that write to files, in the order in which they are read: of two for one path the first one counts."""
    for path, line in _lines(host, "tmpfiles.d"):
        kind, *fields = line.split(None, 6)
        if kind.rstrip("!+-=~^$") == "w" and len(fields) == 6:
            yield BootLine(path, fields[0].strip("\"'"), fields[5])


def _lines(host: Host, folder: str, after: str = "") -> Iterator[Tuple[str, str]]:
    """Path and text of each line that is no comment, the files by name, whichever folder they are in."""
    paths: Dict[str, str] = {}
    for root in _ROOTS:
        for name in host.names(f"{root}/{folder}"):
            if name.endswith(".conf") and name > after:
                paths.setdefault(name, f"{root}/{folder}/{name}")
    for _name, path in sorted(paths.items()):
        if is_nearmetal_file(path):
            continue
        for line in map(str.strip, (host.text(path, limit=_LIMIT) or "").splitlines()):
            if line and not line.startswith(("#", ";")):
                yield path, line
