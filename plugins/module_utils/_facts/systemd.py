# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which systemd a host has, and what its version can read. PRIVATE to the collection.

systemd skips a line of a unit that it doesn't know. But an unknown group in a filter of system calls leaves the filter
without the group, which kills the service, and a tool refuses an unknown option. So what nearmetal writes for systemd,
and the options that it gives its tools, are chosen by the host's version.
"""

from __future__ import annotations

import re
from typing import Mapping, Optional, Sequence, Tuple

from .host import Host

OLDEST = 219  # of Amazon Linux 2; a version that can't be found out counts as this one
# As systemd-nspawn looks for the version of a tree.
LIBRARIES = (
    "/usr/lib/systemd",
    "/lib/systemd",
    "/usr/lib64/systemd",
    "/usr/lib/x86_64-linux-gnu/systemd",
    "/usr/lib/aarch64-linux-gnu/systemd",
)
LIBRARY = r"libsystemd-shared-([0-9]{3})[0-9A-Za-z._-]{0,64}\.so"

_SET = ("/etc/systemd/system.control", "/run/systemd/system.control", "/run/systemd/transient")  # `set-property`
_LIBRARIES = ("/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
# The folders of units, in the order of systemd.unit(5).
UNIT_FOLDERS = (
    *(*_SET, "/run/systemd/generator.early", "/etc/systemd/system", "/run/systemd/system", "/run/systemd/generator"),
    *(*_LIBRARIES, "/run/systemd/generator.late"),
)
# The trees of control groups, and those of services, of either version.
TREES = ("/sys/fs/cgroup", "/sys/fs/cgroup/systemd")
GROUPS = tuple(f"{tree}/system.slice" for tree in TREES)

# The beginning of a line or an option → the first version that reads it, after systemd's NEWS and manual pages, and the
# units and tools of 219, 229 and 237 themselves. 219 reads everything else that nearmetal writes.
_SINCE: Mapping[str, int] = {
    "LimitCPU=600:": 229,
    "StartLimitIntervalSec=": 230,
    "MemoryDenyWriteExecute=": 231,
    "ReadWritePaths=": 231,
    "RestrictRealtime=": 231,
    "ProtectControlGroups=": 232,
    "ProtectSystem=strict": 232,
    "RestrictNamespaces=": 233,
    "LockPersonality=": 235,
    "SystemCallFilter=@system-service": 239,
    "--wait": 240,  # of `systemctl is-system-running`
    "ProtectHostname=": 242,
    "RestrictSUIDSGID=": 242,
    "NUMAPolicy=": 243,
    "ProtectClock=": 245,
    "ManageForeignRoutes=": 246,
    "ManageForeignRoutingPolicyRules=": 249,
}
# What older versions read in its place → the first version for which it isn't written.
_BEFORE: Mapping[str, int] = {
    "LimitCPU=660": 229,
    "StartLimitInterval=": 230,
    "ReadWriteDirectories=": 231,
    "ProtectSystem=full": 232,
}


def runs(host: Host, unit: str) -> bool:
    """Whether a service has a process, by its control group, without a program to ask."""
    return any(host.line(f"{group}/{unit}/cgroup.procs") for group in GROUPS)


def version(host: Host) -> Optional[int]:
    """The version of systemd, which its own library has in its name; None when none is found (older than 231)."""
    matches = (re.fullmatch(LIBRARY, name, re.ASCII) for folder in LIBRARIES for name in host.names(folder))
    return max((int(match.group(1)) for match in matches if match is not None), default=None)


def reads(number: Optional[int], text: str) -> bool:
    """Whether a line or an option is one for systemd of this version."""
    present = number or OLDEST
    return all(present >= first for start, first in _SINCE.items() if text.startswith(start)) and all(
        present < first for start, first in _BEFORE.items() if text.startswith(start)
    )


def lines_for(number: Optional[int], text: str) -> str:
    """The lines of a unit's text that are for this version."""
    return "".join(line for line in text.splitlines(keepends=True) if reads(number, line))


def words_for(number: Optional[int], words: Sequence[str]) -> Tuple[str, ...]:
    """The words of a command that are for this version."""
    return tuple(word for word in words if reads(number, word))
