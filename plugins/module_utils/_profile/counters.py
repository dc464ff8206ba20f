# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel counted while a profile was recorded. PRIVATE to the collection."""

from __future__ import annotations

import re
import time
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from .._facts import interrupts
from .._facts.host import Host
from .._parse import kernel_counters
from .._parse.interrupts import Interrupts, parse

_SWITCHES = re.compile(r"^ctxt ([0-9]{1,20})$", re.ASCII | re.MULTILINE)
_RUNNABLE = re.compile(r"(?:[0-9.]+ ){3}([0-9]{1,9})/[0-9]{1,9} ", re.ASCII)
_LOOK = 0.5  # seconds between two looks at how many threads want to run
# Of /proc/vmstat and of the network's protocols: what a piece of advice asks for, or what explains a profile.
_MEMORY = (
    *("pgfault", "pgmajfault", "thp_fault_alloc", "thp_collapse_alloc", "compact_stall", "pswpin", "pswpout"),
    *("numa_hit", "numa_miss", "numa_hint_faults", "pgmigrate_success", "allocstall_normal"),
)
_NETWORK = {"retransmitted": "Tcp.RetransSegs", "sent": "Tcp.OutSegs", "listen_drops": "TcpExt.ListenDrops"}
_BUSIEST = 8  # interrupts and kinds of softirqs that are named, of those of one CPU


class Reading(NamedTuple):
    """The counters at one moment."""

    times: Mapping[int, kernel_counters.Times]
    switches: Optional[int]
    memory: Mapping[str, int]
    network: Mapping[str, int]
    softnet: Optional[kernel_counters.Softnet]
    interrupts: Interrupts
    softirqs: Interrupts


class Counters:
    """Counters over a time, and between its ends the number of threads that run or want to."""

    def __init__(self, host: Host, seconds: float) -> None:
        self._host, self.seconds = host, seconds
        self._found: Optional[Dict[str, Any]] = None
        self._before = read(host)
        self._began = time.monotonic()
        self._looked = 0.0
        self._runnable: List[int] = []

    def look(self) -> bool:
        """Look at the run queue, if it is time to; whether the time is over. The thread that looks isn't counted."""
        if time.monotonic() - self._began >= self.seconds:
            self.end()  # perf still writes what it recorded
            return True
        if time.monotonic() - self._looked >= _LOOK:
            self._looked = time.monotonic()
            found = _RUNNABLE.match(self._host.text("/proc/loadavg") or "")
            self._runnable += [max(int(found[1]) - 1, 0)] if found else []
        return False

    def end(self) -> Dict[str, Any]:
        """What was counted since the beginning; a name that is missing is what this kernel doesn't say."""
        if self._found is None:
            self._found = between(self._before, read(self._host), time.monotonic() - self._began, self._runnable)
        return self._found


def read(host: Host) -> Reading:
    """Read a handful of files of /proc."""
    stat = host.text("/proc/stat", 1024 * 1024) or ""
    switches = _SWITCHES.search(stat)
    network = kernel_counters.parse_netstat(
        "\n".join(host.text(f"/proc/net/{name}", 65536) or "" for name in ("snmp", "netstat"))
    )
    return Reading(
        kernel_counters.cpu_times(stat),
        int(switches[1]) if switches else None,
        kernel_counters.parse_counts(host.text("/proc/vmstat", 65536) or ""),
        network,
        kernel_counters.parse_softnet(host.text("/proc/net/softnet_stat") or ""),
        interrupts.observe(host),
        parse(host.text("/proc/softirqs", 1024 * 1024) or ""),
    )


def between(before: Reading, after: Reading, seconds: float, runnable: List[int]) -> Dict[str, Any]:
    """The difference of two readings, as the result has it."""
    times = {cpu: (before.times[cpu], now) for cpu, now in after.times.items() if cpu in before.times}
    passed = {cpu: now.total - then.total for cpu, (then, now) in times.items()}
    loads = {
        cpu: (now.interrupts - then.interrupts) / passed[cpu] for cpu, (then, now) in times.items() if passed[cpu] > 0
    }
    known: Dict[str, Any] = {"seconds": round(seconds, 3), "cpus": len(times)}
    if runnable:
        known["runnable"] = round(sum(runnable) / len(runnable), 2)
    if sum(passed.values()) > 0:
        stolen = sum(now.stolen - then.stolen for then, now in times.values())
        known["steal"] = round(max(0, stolen) / sum(passed.values()), 4)
    if before.switches is not None and after.switches is not None:
        known["context_switches"] = after.switches - before.switches
    if loads:
        cpu = max(loads, key=loads.__getitem__)
        known["interrupt_load"] = {str(number): round(load, 4) for number, load in sorted(loads.items())}
        known["interrupts"] = _of_each(before.interrupts, after.interrupts)
        known["softirqs"] = _of_each(before.softirqs, after.softirqs)
        known["busiest_cpu"] = {
            "cpu": cpu,
            "interrupts": _busiest(before.interrupts, after.interrupts, cpu),
            "softirqs": _busiest(before.softirqs, after.softirqs, cpu),
        }
    for name in _MEMORY:
        if name in before.memory and name in after.memory:
            known[name] = after.memory[name] - before.memory[name]
    for name, counter in _NETWORK.items():
        if counter in before.network and counter in after.network:
            known[name] = after.network[counter] - before.network[counter]
    if before.softnet is not None and after.softnet is not None:
        known["dropped"] = after.softnet.dropped - before.softnet.dropped
        known["squeezed"] = after.softnet.squeezed - before.softnet.squeezed
    return known


def _of_each(before: Interrupts, after: Interrupts) -> Dict[str, int]:
    """All interrupts of each CPU."""
    columns = [counted for _name, counted in _counted(before, after)]
    return {str(cpu): sum(column) for cpu, column in zip(after.cpus, zip(*columns))}


def _busiest(before: Interrupts, after: Interrupts, cpu: int) -> Dict[str, int]:
    """The lines that counted most on a CPU: `NET_RX`, or `LOC Local timer interrupts`."""
    if cpu not in after.cpus:
        return {}
    column = after.cpus.index(cpu)
    found = {name: counted[column] for name, counted in _counted(before, after) if counted[column]}
    return dict(sorted(found.items(), key=lambda entry: -entry[1])[:_BUSIEST])


def _counted(before: Interrupts, after: Interrupts) -> Iterator[Tuple[str, List[int]]]:
    """Each line's name, and what it counted on each CPU; nothing when other CPUs are online now."""
    earlier = {line.label: line.counters for line in before.lines} if before.cpus == after.cpus else {}
    for line in after.lines:
        then = earlier.get(line.label, ())
        if len(line.counters) == len(then) == len(after.cpus):
            name = f"{line.label} {' '.join(line.names) or line.description}".strip()
            yield name, [max(now - was, 0) for now, was in zip(line.counters, then)]
