# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drivers of EC2's network interfaces: in use, in the image, and how ENA sends packets. PRIVATE to the collection.

ENA sends from the host's memory, or pushes packets to the device (LLQ). The driver shows it only in the kernel log, and
by a transmit ring of half the size.
"""

from __future__ import annotations

import os
import re
from typing import Dict, Iterable, NamedTuple, Optional, Tuple

from .._parse import kernel_log
from . import ethtool, log
from .host import Host
from .interface import drivers
from .nic import Nic

# The drivers that enhanced networking needs (AWS, 2017).
WANTED = ("ena", "ixgbevf")
_NAME = re.compile(r"[\w.-]{1,64}", re.ASCII)
_RELEASE = re.compile(r"[\w.+~-]{1,128}", re.ASCII)
# "ena 0000:00:05.0: LLQ is not supported Fallback to host mode policy."
_FALLBACK = re.compile(r"ena ([0-9a-f:.]{7,16})[^\n]{0,40}: LLQ is not supported", re.ASCII)
_LARGE = 512


class DriverFacts(NamedTuple):
    """Network drivers of a host."""

    in_use: Tuple[str, ...]  # by interfaces with hardware behind them; vif is Xen's split driver
    available: Optional[Tuple[str, ...]]  # of ena and ixgbevf, in the running kernel's image; None: can't be seen


def observe(host: Host) -> DriverFacts:
    """Read /sys/class/net, /sys/module, and the running kernel's list of modules."""
    in_use = tuple(sorted(filter(_NAME.fullmatch, set(drivers(host).values()))))
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
    paths = (line.partition(":")[0] for text in lists for line in (text or "").splitlines())
    listed = {os.path.basename(path).partition(".ko")[0] for path in paths}
    return tuple(name for name in WANTED if name in listed | loaded)


def llq(host: Host, nics: Iterable[Nic]) -> Dict[str, Optional[str]]:
    """Interface → `host` (no LLQ), `llq`, `large` (headers of 224 bytes, half a ring); None: the log doesn't say."""
    nics_of_ena = [nic for nic in nics if nic.driver == "ena"]
    boot_log = log.since_boot(host) if nics_of_ena else None
    messages = kernel_log.messages(boot_log.text if boot_log is not None else "", "LLQ is not supported")
    fallen = {place for message in messages for place in _FALLBACK.findall(message)}
    answer: Dict[str, Optional[str]] = {}
    for nic in nics_of_ena:
        rings = ethtool.rings(host, nic.name)
        if nic.place in fallen:
            answer[nic.name] = "host"
        elif rings is not None and rings["tx_max"] == _LARGE:
            answer[nic.name] = "large"
        else:
            answer[nic.name] = "llq" if boot_log is not None and boot_log.text and not boot_log.cut else None
    return answer
