# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which drivers of EC2's network interfaces a host runs on, and which its image has. PRIVATE to the collection."""

from __future__ import annotations

import os
import re
from typing import NamedTuple, Optional, Tuple

from .host import Host

# The drivers that enhanced networking needs (AWS, 2017).
WANTED = ("ena", "ixgbevf")
_NAME = re.compile(r"[\w.-]{1,64}", re.ASCII)
_RELEASE = re.compile(r"[\w.+~-]{1,128}", re.ASCII)


class DriverFacts(NamedTuple):
    """Network drivers of a host."""

    in_use: Tuple[str, ...]  # by interfaces with hardware behind them; vif is Xen's split driver
    available: Optional[Tuple[str, ...]]  # of ena and ixgbevf, in the running kernel's image; None: can't be seen


def observe(host: Host) -> DriverFacts:
    """Read /sys/class/net, /sys/module, and the running kernel's list of modules."""
    links = (host.link(f"/sys/class/net/{name}/device/driver") for name in host.names("/sys/class/net"))
    names = {os.path.basename(link) for link in links if link}
    in_use = tuple(sorted(name for name in names if _NAME.fullmatch(name)))
    return DriverFacts(in_use, _available(host))


def _available(host: Host) -> Optional[Tuple[str, ...]]:
    release = (host.text("/proc/sys/kernel/osrelease") or "").strip()
    loaded = {name for name in WANTED if host.exists(f"/sys/module/{name}")}
    lists = []
    if _RELEASE.fullmatch(release):
        # modules.dep names each module file before a colon, modules.builtin what is in the kernel itself.
        lists = [host.text(f"/lib/modules/{release}/{name}") for name in ("modules.dep", "modules.builtin")]
    if not any(lists):
        return tuple(sorted(loaded)) or None
    listed = set()
    for text in lists:
        for line in (text or "").splitlines():
            listed.add(os.path.basename(line.partition(":")[0]).partition(".ko")[0])
    return tuple(name for name in WANTED if name in listed | loaded)
