# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's counters before and after a load: they tell a disturbed measurement. PRIVATE to the collection."""

from __future__ import annotations

import os
import re
import time
from typing import Any, Collection, Dict, List, NamedTuple, Optional, Set, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._facts import ebs, ethtool
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host

_CPU = re.compile(r"^cpu((?: +[0-9]{1,20}){8,10})\s*$", re.ASCII | re.MULTILINE)
_CGROUP = re.compile(r"^0::(/[^\n]*)$", re.MULTILINE)
_STAT = re.compile(r"[0-9]+ \((?P<name>.*)\) (?P<rest>.*)", re.DOTALL)
_GAUGE = "conntrack_allowance_available"
_KERNEL = "2"  # the parent of all kernel threads
_MOST_PROCESSES = 20000

Usage = Dict[Tuple[int, str], Tuple[str, float]]  # process and when it began → its name and CPU seconds


class Sample(NamedTuple):
    """One moment; None: the host doesn't say."""

    boot_id: str
    host_seconds: float  # since 1970 by the host's clock
    cpu_total: Optional[float]  # seconds of all CPUs since boot, idle ones too
    cpu_steal: Optional[float]
    throttled: Optional[int]  # how often this cgroup had used up its CPU time
    swapped: Optional[int]  # pages in and out since boot
    allowances: Dict[str, int]  # counter → packets or microseconds beyond what the instance may
    usage: Usage

    def as_dict(self, foreign: Optional[float]) -> Dict[str, Any]:
        """Plain JSON; `foreign` are CPU seconds of processes that aren't part of the load, None where none is told."""
        fields = self._asdict()
        del fields["usage"]
        return {**fields, "cpu_foreign": foreign}


def observe(host: Host) -> Sample:
    """Read them now."""
    total, steal = _cpu(host)
    return Sample(
        boot_id=host.line("/proc/sys/kernel/random/boot_id") or "",
        host_seconds=time.time(),
        cpu_total=total,
        cpu_steal=steal,
        throttled=_throttled(host),
        swapped=_swapped(host),
        allowances=_allowances(host),
        usage=_usage(host),
    )


def foreign(before: Sample, after: Sample, own: Collection[str]) -> List[Tuple[str, float]]:
    """The CPU seconds of each program but those of the load (`own`), the busiest first."""
    found: Dict[str, float] = {}
    for key, (name, seconds) in after.usage.items():
        used = seconds - before.usage.get(key, ("", 0.0))[1]
        if used > 0 and name not in own:
            found[name] = found.get(name, 0.0) + used
    return sorted(found.items(), key=lambda item: -item[1])


def _cpu(host: Host) -> Tuple[Optional[float], Optional[float]]:
    spent = ticks(host)
    return (sum(spent) / _rate(), spent[7] / _rate()) if spent else (None, None)


def busy(first: List[int], second: List[int]) -> Optional[float]:
    """The share of CPU time, 0 to 1, that was in use between two `ticks`; None when it can't be told."""
    passed = [after - before for before, after in zip(first, second)]
    return max(0.0, min(1.0, 1 - (passed[3] + passed[4]) / sum(passed))) if sum(passed) > 0 else None


def ticks(host: Host) -> List[int]:
    """Of all CPUs: user, nice, system, idle, iowait, irq, softirq, steal; empty when the host doesn't say."""
    found = _CPU.search(host.text("/proc/stat") or "")
    return [int(number) for number in found[1].split()[:8]] if found else []


def _rate() -> float:
    return float(os.sysconf("SC_CLK_TCK"))


def _throttled(host: Host) -> Optional[int]:
    group = _CGROUP.search(host.text("/proc/self/cgroup") or "")
    text = host.text(f"/sys/fs/cgroup{group[1]}/cpu.stat") if group else None
    return _field(text or "", "nr_throttled")


def _swapped(host: Host) -> Optional[int]:
    text = host.text("/proc/vmstat") or ""
    pages = [_field(text, name) for name in ("pswpin", "pswpout")]
    return sum(page for page in pages if page is not None) if None not in pages else None


def _field(text: str, name: str) -> Optional[int]:
    found = re.search(rf"^{name} ([0-9]{{1,20}})$", text, re.ASCII | re.MULTILINE)
    return int(found[1]) if found else None


def _allowances(host: Host) -> Dict[str, int]:
    found: Dict[str, int] = {}
    for name in host.names("/sys/class/net"):
        for counter, value in (ethtool.allowances(host, name) or {}).items():
            if counter != _GAUGE:
                found[counter] = found.get(counter, 0) + value
    for _device, exceeded in ebs.observe(host).exceeded:
        for counter, value in exceeded._asdict().items():
            found[f"ebs_{counter}"] = found.get(f"ebs_{counter}", 0) + value
    return found


def _usage(host: Host) -> Usage:
    """The CPU time of each process of user space and of the children that it waited for.

    Not of our own session, nor of those that started us, such as a controller on the same machine.
    """
    own, ancestors = str(os.getsid(0)), _ancestors(host)
    found: Usage = {}
    for pid in _pids(host):
        name, fields = _status(host, pid)
        if len(fields) < 20 or fields[1] == _KERNEL or fields[3] == own or pid in ancestors:
            continue
        # Whoever the first process waits for may be of the load.
        times = fields[11:13] if pid == "1" else fields[11:15]
        if all(number.isdigit() for number in times):
            found[int(pid), fields[19]] = (name, sum(map(int, times)) / _rate())
    return found


def _ancestors(host: Host) -> Set[str]:
    found: Set[str] = set()
    pid = str(os.getpid())
    while pid not in ("0", "1", "") and pid not in found:
        found.add(pid)
        fields = _status(host, pid)[1]
        pid = fields[1] if len(fields) > 1 else ""
    return found


def _pids(host: Host) -> List[str]:
    names = host.names("/proc")
    return [name for name in names if name.isdigit() and name.isascii() and len(name) < 8][:_MOST_PROCESSES]


def _status(host: Host, pid: str) -> Tuple[str, List[str]]:
    """A process's name, and what follows it in /proc/PID/stat: its state, parent, group, session and so on."""
    stat = _STAT.match(host.text(f"/proc/{pid}/stat", 4096) or "")
    return (stat["name"], stat["rest"].split()) if stat else ("", [])
