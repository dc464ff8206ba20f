# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The process of irqbalance. PRIVATE to the collection."""

from __future__ import annotations

from .._number import process_numbers
from .host import Host

UNIT = "irqbalance.service"
PROGRAMS = ("/usr/sbin/irqbalance", "/usr/bin/irqbalance")
_GROUPS = ("/sys/fs/cgroup", "/sys/fs/cgroup/systemd")


def arguments(host: Host) -> tuple[str, ...] | None:
    """The arguments of its process, by the control group of either version; None when it doesn't run.

    The group may also hold a script that irqbalance runs, or a process that systemd is about to turn into it.
    """
    for group in _GROUPS:
        for pid in process_numbers((host.text(f"{group}/system.slice/{UNIT}/cgroup.procs", 65536) or "").split()):
            line = (host.raw(f"/proc/{pid}/cmdline") or b"").decode("utf-8", "replace").split("\0")
            if line[0] in PROGRAMS:
                return tuple(line[1:-1])
    return None
