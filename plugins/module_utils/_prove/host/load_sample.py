# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's counters before and after a load: they reveal a disturbed measurement. PRIVATE to the collection."""

from __future__ import annotations

import os
import re
import time
from typing import Any, Collection, Dict, List, NamedTuple, Optional, Set, Tuple

from ..._error import NearmetalError
from ..._facts import ebs, ethtool, interrupts
from ..._facts.host import Host
from ..._host.host import WritableHost
from ..._number import is_number, process_numbers
from ..._parse import kernel_counters, timers
from ..statistics.record import Sample

_CGROUP = re.compile(r"^0::(/[^\n]*)$", re.MULTILINE)
_STAT = re.compile(r"[0-9]+ \((?P<name>.*)\) (?P<rest>.*)", re.DOTALL)
_KERNEL = "2"  # the parent of all kernel threads
_MOST_PROCESSES = 20000
_MOST_QUEUES = 300  # interrupts of devices that a sample has
_LONGEST_NAME = 60  # of an interrupt
_FIRST = "1"
# Programs that start jobs by a timetable: of Debian and of Red Hat, and the one for single jobs.
_SCHEDULERS = ("cron", "crond", "atd")

Processes = Dict[str, Tuple[str, List[str]]]  # process → its name and status
Served = Dict[str, Set[Tuple[str, str]]]  # program → its processes, each with the time at which it began
_NEARMETAL_TIMER = "nearmetal"  # how its timers' names begin: the unit sets nothing in a run, and prove's own ends it
_PATIENCE = 10.0  # seconds for systemd's answer


class Used(NamedTuple):
    """What a process has used since it began, in CPU seconds."""

    name: str
    parent: str
    own: float
    of_children: float  # of those that ended and that it waited for, over their whole lives


Usage = Dict[Tuple[str, str], Used]  # process and when it began → what it used


class Observed(NamedTuple):
    """The counters of the host, and what each process has used."""

    counters: Sample
    usage: Usage

    def as_dict(self, foreign: Optional[float]) -> Dict[str, Any]:
        """Plain JSON; `foreign` are the CPU seconds of processes that aren't part of the load, None if not known."""
        return self.counters._replace(cpu_foreign=foreign)._asdict()


def observe(host: Host, programs: Collection[str]) -> Observed:
    """Read the counters; `programs` are those that serve the load."""
    stat = host.text("/proc/stat") or ""
    spent = [ticks_spent / _rate() for ticks_spent in kernel_counters.ticks(stat).get("cpu", [])]
    processes = {pid: _status(host, pid) for pid in _pids(host)}
    counters = Sample(
        boot_id=host.line("/proc/sys/kernel/random/boot_id") or "",
        host_seconds=time.time(),
        cpu_total=sum(spent) if spent else None,
        cpu_steal=spent[7] if spent else None,
        cpu_softirq=spent[6] if spent else None,
        context_switches=kernel_counters.parse_counts(stat).get("ctxt"),
        interrupts=_interrupts(host),
        throttled=_throttled(host, processes, programs),
        swapped=_swapped(host),
        allowances=_allowances(host),
        jobs=_jobs(processes),
    )
    return Observed(counters, _usage(host, processes))


def served(host: Host, programs: Collection[str]) -> Served:
    """The processes of the programs that serve the load."""
    identities: Served = {name: set() for name in programs}
    for pid in _pids(host) if programs else ():
        name, fields = _status(host, pid)
        if name in identities and len(fields) > 19:
            identities[name].add((pid, fields[19]))
    return identities


def ended(before: Served, after: Served) -> List[str]:
    """The programs of which no process was left: all of them ended, even if others have taken their place."""
    return [name for name, processes in before.items() if processes and not processes & after[name]]


def foreign(before: Observed, after: Observed, own: Collection[str]) -> List[Tuple[str, float]]:
    """The CPU seconds of each program that isn't part of the load (`own`), the busiest first."""
    seconds_by_name: Dict[str, float] = {}
    inherited = _inherited(before.usage, after.usage)
    for key, now in after.usage.items():
        earlier = before.usage.get(key, Used("", "", 0.0, 0.0))
        of_children = now.of_children - earlier.of_children - inherited.get(key[0], 0.0)
        used = now.own - earlier.own + max(0.0, of_children)
        if used > 0 and now.name not in own:
            seconds_by_name[now.name] = seconds_by_name.get(now.name, 0.0) + used
    return sorted(seconds_by_name.items(), key=lambda item: -item[1])


def _inherited(before: Usage, after: Usage) -> Dict[str, float]:
    """What processes that ended meanwhile had used before, by the process to which the kernel added all that they used.

    A build of an hour that ends within a load of 2 s would otherwise count as an hour of these 2 s.
    """
    ended = {key[0]: used for key, used in before.items() if key not in after}
    inherited: Dict[str, float] = {}
    for used in ended.values():
        heir, visited = used.parent, set()
        while heir in ended and heir not in visited:
            visited.add(heir)
            heir = ended[heir].parent
        inherited[heir] = inherited.get(heir, 0.0) + used.own + used.of_children
    return inherited


def _interrupts(host: Host) -> Dict[str, int]:
    """How often each interrupt of a device came, on all CPUs together; without those that never did."""
    times: Dict[str, int] = {}
    for line in interrupts.observe(host).lines:
        name = "+".join(line.names)[:_LONGEST_NAME]
        if line.number >= 0 and name.isprintable() and name and any(line.counters):
            times[name] = times.get(name, 0) + sum(line.counters)
    return dict(list(times.items())[:_MOST_QUEUES])


def busy(first: kernel_counters.Ticks, second: kernel_counters.Ticks, others: float = 0.0) -> Optional[float]:
    """The share of time, 0 to 1, in which the busiest CPU was in use between two `ticks`; None if not known.

    A load generator with a single thread leaves all other CPUs idle. It isn't at its limit while it uses less than a
    whole CPU: `others` is how many CPUs other programs used.
    """
    shares = [share for name in first if name != "cpu" for share in _busy(first[name], second.get(name, []))]
    return max(0.0, min(max(shares), sum(shares) - others)) if shares else None


def _busy(first: List[int], second: List[int]) -> List[float]:
    passed = [after - before for before, after in zip(first, second)]
    return [max(0.0, min(1.0, 1 - (passed[3] + passed[4]) / sum(passed)))] if sum(passed) > 0 else []


def ticks(host: Host) -> kernel_counters.Ticks:
    """The CPU times of the host; empty when it doesn't say."""
    return kernel_counters.ticks(host.text("/proc/stat") or "")


def _rate() -> float:
    return float(os.sysconf("SC_CLK_TCK"))


def _throttled(host: Host, processes: Processes, programs: Collection[str]) -> Optional[int]:
    """How often a cgroup was throttled; None also while a program isn't found, whose limit can't be seen then."""
    serving = [pid for pid, (name, _fields) in processes.items() if name in programs]
    if {processes[pid][0] for pid in serving} != set(programs):
        return None
    groups = {group for pid in ("self", *serving) for group in _groups(host, pid)}
    of_groups = [kernel_counters.parse_counts(host.text(f"/sys/fs/cgroup{group}/cpu.stat") or "") for group in groups]
    known = [of_group["nr_throttled"] for of_group in of_groups if "nr_throttled" in of_group]
    return sum(known) if known else None


def _groups(host: Host, pid: str) -> List[str]:
    """The cgroup of a process and those above it, any of which may have a limit."""
    match = _CGROUP.search(host.text(f"/proc/{pid}/cgroup") or "")
    parts = match[1].strip("/").split("/") if match else []
    return ["/" + "/".join(parts[:count]) for count in range(1, len(parts) + 1)]


def _swapped(host: Host) -> Optional[int]:
    pages = kernel_counters.parse_counts(host.text("/proc/vmstat") or "")
    return pages["pswpin"] + pages["pswpout"] if {"pswpin", "pswpout"} <= pages.keys() else None


def _allowances(host: Host) -> Dict[str, int]:
    exceeded_by_counter: Dict[str, int] = {}
    for name in host.names("/sys/class/net"):
        for counter, value in (ethtool.allowances(host, name) or {}).items():
            if counter != ethtool.CONNTRACK_AVAILABLE:
                exceeded_by_counter[counter] = exceeded_by_counter.get(counter, 0) + value
    for _device, exceeded in ebs.observe(host).exceeded:
        for counter, value in exceeded._asdict().items():
            exceeded_by_counter[f"ebs_{counter}"] = exceeded_by_counter.get(f"ebs_{counter}", 0) + value
    return exceeded_by_counter


def _usage(host: Host, processes: Processes) -> Usage:
    """The CPU time of each process of user space and of the children that it waited for.

    nearmetal's own session and the processes that started it, such as a controller on the same machine, are left out.
    So is what descends from this process: it is the load, or what the load has left.
    """
    own, ancestors = str(os.getsid(0)), _ancestors(host)
    load = _descendants(processes, str(os.getpid()))
    usage: Usage = {}
    for pid, (name, fields) in processes.items():
        if len(fields) < 20 or fields[1] == _KERNEL or fields[3] == own or pid in ancestors or pid in load:
            continue
        # The children that the first process waited for may be part of the load.
        times = [*fields[11:13], "0", "0"] if pid == _FIRST else fields[11:15]
        if all(map(is_number, times)):
            user, system, user_of_children, system_of_children = (int(number) / _rate() for number in times)
            usage[pid, fields[19]] = Used(name, fields[1], user + system, user_of_children + system_of_children)
    return usage


def _jobs(processes: Processes) -> Dict[str, str]:
    """Marks of the jobs of cron and at.

    Of a job that ended, by the page faults that its parent is charged with when it waits for it, which each process
    has; of one that runs, by when it began: an empty mark if none does.
    """
    marks: Dict[str, str] = {}
    for pid, (name, fields) in processes.items():
        if name not in _SCHEDULERS or len(fields) < 20 or fields[1] != _FIRST:
            continue  # a job is called as its scheduler, until it has started its program
        began = [of_job[19] for _name, of_job in processes.values() if len(of_job) > 19 and of_job[1] == pid]
        marks[name] = fields[8]
        marks[f"{name} (still running)"] = max(began, key=lambda ticks: (len(ticks), ticks), default="")
    return marks


def _ancestors(host: Host) -> Set[str]:
    ancestors: Set[str] = set()
    pid = str(os.getpid())
    while pid not in ("0", "1", "") and pid not in ancestors:
        ancestors.add(pid)
        fields = _status(host, pid)[1]
        pid = fields[1] if len(fields) > 1 else ""
    return ancestors


def _descendants(processes: Processes, first: str) -> Set[str]:
    children: Dict[str, List[str]] = {}
    for pid, (_name, fields) in processes.items():
        children.setdefault(fields[1] if len(fields) > 1 else "", []).append(pid)
    descendants: Set[str] = set()
    waiting = [first]
    while waiting:
        new = set(children.get(waiting.pop(), ())) - descendants
        descendants |= new
        waiting += new
    return descendants


def _pids(host: Host) -> List[str]:
    return [str(pid) for pid in process_numbers(host.names("/proc"))[:_MOST_PROCESSES]]


def _status(host: Host, pid: str) -> Tuple[str, List[str]]:
    """A process's name, and what follows it in /proc/PID/stat: its state, parent, group, session and so on."""
    stat = _STAT.match(host.text(f"/proc/{pid}/stat", 4096) or "")
    return (stat["name"], stat["rest"].split()) if stat else ("", [])


def before_load(host: WritableHost, programs: Collection[str]) -> Observed:
    """The counters right before the load: systemd is asked first, so that its work isn't counted."""
    of_systemd = _timers(host)
    return _with_timers(observe(host, programs), of_systemd)


def after_load(host: WritableHost, programs: Collection[str]) -> Observed:
    """The counters right after the load: systemd is asked last, so that its work isn't counted."""
    observed = observe(host, programs)
    return _with_timers(observed, _timers(host))


def _with_timers(observed: Observed, of_systemd: Dict[str, str]) -> Observed:
    counters = observed.counters
    return observed._replace(counters=counters._replace(jobs={**counters.jobs, **of_systemd}))


def _timers(host: WritableHost) -> Dict[str, str]:
    """What each timer last started; nothing without systemd, or where it doesn't answer."""
    if not host.booted():
        return {}
    properties = [f"--property={name}" for name in timers.PROPERTIES]
    try:
        text = host.command(("systemctl", "show", *properties, "*.timer"), _PATIENCE)
    except NearmetalError:
        return {}
    return {name: last for name, last in timers.timers(text).items() if not name.startswith(_NEARMETAL_TIMER)}
