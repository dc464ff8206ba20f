# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mounts of reserved huge pages, as systemd units of nearmetal. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Dict, Mapping, Optional, Tuple

from .host import Host
from .native_files import MARK

FOLDER = "/etc/systemd/system"
WANTS = f"{FOLDER}/local-fs.target.wants"

# Only characters that a mount table doesn't escape, and of which a unit's name escapes only the hyphen.
PATH = r"(?:/[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}){1,8}"
OPTIONS = r"pagesize=([0-9]{1,4}[KMG])(?:,gid=([0-9]{1,10}),mode=1770)?"
ABSENT = " (not mounted)"
_RESERVED = "/sys/kernel/mm/hugepages"
MADE = "# Its folder was made for it.\n"
# On an instance type without pages of this size the mount is left out; a mount that fails delays no boot.
_UNIT = """{mark} (concern hugepages): restore with state: restored, don't edit
{made}[Unit]
Description=Huge pages for programs that open them as files
ConditionPathExists={reserved}/hugepages-{kib}kB

[Mount]
What=hugetlbfs
Where={path}
Type=hugetlbfs
Options={options}

[Install]
WantedBy=local-fs.target
"""
_KIB = {"K": 1, "M": 1024, "G": 1024 * 1024}
_SET = r"^(Where|Options)=(.{1,512})$"


def unit_of(path: str) -> str:
    """The name that systemd demands of the unit for a mount point (systemd-escape --path)."""
    return path.strip("/").replace("-", "\\x2d").replace("/", "-") + ".mount"


def nearmetal_mounts(host: Host) -> Mapping[str, str]:
    """Path → options of each mount of nearmetal, followed by ABSENT when it isn't mounted, or won't be at boot."""
    options_of: Dict[str, str] = {}
    mounted = mounts(host)
    running = host.exists("/run/systemd/system")
    for name in host.names(FOLDER):
        path, options = _unit(host, name) if name.endswith(".mount") else (None, None)
        if path is not None and options is not None and unit_of(path) == name:
            complete = host.exists(f"{WANTS}/{name}") and (not running or mounted.get(path) == "hugetlbfs")
            options_of[path] = options if complete else options + ABSENT
    return options_of


def mounts(host: Host) -> Mapping[str, str]:
    """Path → type of every mount that the first process sees."""
    lines = (line.split() for line in (host.text("/proc/1/mounts") or "").splitlines())
    return {fields[1]: fields[2] for fields in lines if len(fields) > 2}


def _unit(host: Host, name: str) -> Tuple[Optional[str], Optional[str]]:
    text = host.text(f"{FOLDER}/{name}", 4096) or ""
    if not text.startswith(MARK):
        return None, None
    values = dict(re.findall(_SET, text, re.ASCII | re.MULTILINE))
    return values.get("Where"), values.get("Options")


def unit_text(path: str, options: str, made: bool) -> str:
    """The unit of a mount, whose folder was `made` for it or not."""
    match = re.fullmatch(OPTIONS, options, re.ASCII)
    size = match.group(1) if match is not None else ""
    return _UNIT.format(
        mark=MARK,
        made=MADE if made else "",
        reserved=_RESERVED,
        kib=int(size[:-1]) * _KIB[size[-1]],
        path=path,
        options=options,
    )
