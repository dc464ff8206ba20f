# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The network's counters over a few seconds. PRIVATE to the collection.

Counters since boot say little about the present: a host that was slow last week still shows it.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional

from .._number import is_number
from .._parse import kernel_counters
from . import ethtool, interrupts, nic
from .host import Host


class _Counters(NamedTuple):
    allowances: Mapping[str, Mapping[str, int]]  # interface → counter → value
    packets: Mapping[str, int]  # interface → sent and received
    times: Mapping[int, kernel_counters.Times]


def observe(host: Host, seconds: int, wait: Callable[[float], None] = time.sleep) -> Dict[str, Any]:
    """Interrupt load per CPU and steal (0 to 1), ENA's allowances, and packets in `seconds`; with 0 since boot."""
    first = _counters(host) if seconds else _Counters({}, {}, {})
    if seconds:
        wait(seconds)
    second = _counters(host)
    return {
        "seconds": seconds,
        "interrupt_load": _load(first, second),
        "steal": _steal(first, second),
        "allowances": {
            name: {
                counter: value
                if counter == ethtool.CONNTRACK_AVAILABLE
                else value - first.allowances.get(name, {}).get(counter, 0)
                for counter, value in counters.items()
            }
            for name, counters in second.allowances.items()
        },
        "packets": {name: count - first.packets.get(name, 0) for name, count in second.packets.items()},
    }


def _counters(host: Host) -> _Counters:
    nics = nic.observe(host, interrupts.observe(host))
    answers = {interface.name: ethtool.allowances(host, interface.name) for interface in nics}
    allowances = {name: counters for name, counters in answers.items() if counters is not None}
    packets = {name: _packets(host, name) for name in allowances}
    return _Counters(
        allowances=allowances,
        packets={name: count for name, count in packets.items() if count is not None},
        times=kernel_counters.cpu_times(host.text("/proc/stat") or ""),
    )


def _packets(host: Host, name: str) -> Optional[int]:
    counts = [host.line(f"/sys/class/net/{name}/statistics/{side}_packets") or "" for side in ("rx", "tx")]
    known = all(is_number(count) for count in counts)
    return sum(map(int, counts)) if known else None


def _load(first: _Counters, second: _Counters) -> Dict[str, float]:
    nothing = kernel_counters.Times(0, 0)
    load = {}
    for cpu, after in second.times.items():
        before = first.times.get(cpu, nothing)
        if after.total > before.total:
            load[str(cpu)] = round((after.interrupts - before.interrupts) / (after.total - before.total), 4)
    return load


def _steal(first: _Counters, second: _Counters) -> Optional[float]:
    """The share of steal of the CPUs that were online at both times."""
    nothing = kernel_counters.Times(0, 0)
    pairs = [(first.times.get(cpu, nothing), after) for cpu, after in second.times.items()]
    passed = sum(after.total - before.total for before, after in pairs)
    stolen = sum(after.stolen - before.stolen for before, after in pairs)
    return round(max(0, stolen) / passed, 4) if passed > 0 else None
