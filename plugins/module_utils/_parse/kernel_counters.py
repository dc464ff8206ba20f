# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Counters of the kernel: vmstat, meminfo, stat, swaps and diskstats of /proc, and the network's. PRIVATE."""

from __future__ import annotations

import re
from typing import Dict, List, NamedTuple, Optional

_COUNT = re.compile(r"^([a-z0-9_]{1,64}) ([0-9]{1,20})[ \t]*$", re.ASCII | re.MULTILINE)
# A node's file begins each line with "Node 0 ". Lines without a unit are counts (HugePages_Total).
_MEMORY = re.compile(r"(?:Node\s+[0-9]+\s+)?([A-Za-z0-9_()]+):\s*([0-9]{1,18})(\s+kB)?\s*", re.ASCII)
_PROTOCOL_NAMES = re.compile(r"([A-Za-z0-9]{1,32}):((?: [A-Za-z0-9]{1,64}){1,400}) *", re.ASCII)
_PROTOCOL_VALUES = re.compile(r"([A-Za-z0-9]{1,32}):((?: -?[0-9]{1,20}){1,400}) *", re.ASCII)
# One line per CPU in hexadecimal: packets, dropped, squeezed, … (softnet_seq_show() in net/core/net-procfs.c).
_SOFTNET = re.compile(r"([0-9a-f]{8}) ([0-9a-f]{8}) ([0-9a-f]{8})(?: [0-9a-f]{1,16}){0,20} *", re.ASCII)
_CPU = re.compile(r"^(cpu[0-9]{0,5})((?: +[0-9]{1,20}){8,10})\s*$", re.ASCII | re.MULTILINE)
_SWAP = r"(/\S{0,4096})\s+(partition|file)\s+[0-9]{1,20}\s+[0-9]{1,20}\s+-?[0-9]{1,10}\s*"
_DEVICE = r"/dev/([A-Za-z0-9_-]{1,32})"
# Major and minor number, name, and ten counters of which the tenth is the milliseconds in which it was in use.
_DISK = r" *[0-9]{1,5} +[0-9]{1,7} ([A-Za-z0-9_-]{1,32})(?: [0-9]{1,20}){9} ([0-9]{1,20})(?: [0-9]{1,20})*"

Ticks = Dict[str, List[int]]  # "cpu" for all, "cpu0", … → user, nice, system, idle, iowait, irq, softirq, steal


class Softnet(NamedTuple):
    """Counts of all CPUs since boot. The first column is left out: on a busy CPU its 32 bits overflow in an hour."""

    dropped: int  # packets for which a CPU's queue (net.core.netdev_max_backlog) had no room
    squeezed: int  # rounds that ended at their limit (net.core.netdev_budget) with packets left


class Times(NamedTuple):
    """Ticks of one CPU, or of all, since boot."""

    total: int
    interrupts: int  # irq and softirq
    stolen: int = 0  # by other guests of the same host


def parse_counts(text: str) -> Dict[str, int]:
    """Name → number; all other lines are left out. Raises nothing."""
    return {name: int(number) for name, number in _COUNT.findall(text)}


def parse_meminfo(text: str) -> Dict[str, int]:
    """Name → value: bytes where the file has kB, else a count. Raises nothing."""
    matches = (match for match in map(_MEMORY.fullmatch, text.splitlines()) if match is not None)
    return {match[1]: int(match[2]) * (1024 if match[3] else 1) for match in matches}


def parse_netstat(text: str) -> Dict[str, int]:
    """Protocol and counter → value: {"TcpExt.ListenDrops": 3}. Raises nothing.

    Each protocol has a line of names, and below it a line of as many values.
    """
    statistics: Dict[str, int] = {}
    lines = text.splitlines()
    for above, below in zip(lines, lines[1:]):
        names, values = _PROTOCOL_NAMES.fullmatch(above), _PROTOCOL_VALUES.fullmatch(below)
        if names is None or values is None or names[1] != values[1]:
            continue
        words, numbers = names[2].split(), values[2].split()
        if len(words) == len(numbers):
            statistics.update((f"{names[1]}.{word}", int(number)) for word, number in zip(words, numbers))
    return statistics


def parse_softnet(text: str) -> Optional[Softnet]:
    """The counts of all CPUs; None when no line has this form."""
    matches = [match for match in map(_SOFTNET.fullmatch, text.splitlines()) if match is not None]
    if not matches:
        return None
    return Softnet(sum(int(match[2], 16) for match in matches), sum(int(match[3], 16) for match in matches))


def ticks(text: str) -> Ticks:
    """The ticks since boot; guest time is part of user. Raises nothing."""
    return {name: [int(number) for number in numbers.split()[:8]] for name, numbers in _CPU.findall(text)}


def cpu_times(text: str) -> Dict[int, Times]:
    """CPU → its times; CPUs that are offline have no line. Raises nothing."""
    return {int(name[len("cpu") :]): _times(spent) for name, spent in ticks(text).items() if name != "cpu"}


def all_times(text: str) -> Optional[Times]:
    """The times of all CPUs together, also of those that are offline now; None without their line."""
    spent = ticks(text).get("cpu")
    return _times(spent) if spent is not None else None


def _times(spent: List[int]) -> Times:
    return Times(sum(spent), spent[5] + spent[6], spent[7])


def parse_swaps(text: str) -> Optional[List[str]]:
    """The name of each swap area's device, nvme0n1p2, and "" for a file; None when the text isn't the kernel's."""
    lines = text.splitlines()
    if not lines or not lines[0].startswith("Filename"):
        return None
    devices = []
    for line in lines[1:]:
        match = re.fullmatch(_SWAP, line, re.ASCII)
        if match is not None:
            device = re.fullmatch(_DEVICE, match[1], re.ASCII) if match[2] == "partition" else None
            devices.append(device[1] if device is not None else "")
    return devices


def render_swaps(areas: List[str]) -> str:
    """A table with these areas, without the paths of files and with zeros for the sizes."""
    rows = (f"/dev/{name} partition 0 0 0\n" if name else "/file file 0 0 0\n" for name in areas)
    return "Filename Type Size Used Priority\n" + "".join(rows)


def in_use(text: str) -> Dict[str, int]:
    """Disk or partition → milliseconds since boot in which it had requests."""
    matches = (re.fullmatch(_DISK, line) for line in text.splitlines())
    return {match[1]: int(match[2]) for match in matches if match is not None}


def disk_of(device: str, disks: Dict[str, int]) -> str:
    """The disk that a partition is on: nvme0n1 for nvme0n1p2; the device itself when it is none."""
    for disk in disks:
        number = "p[0-9]{1,3}" if disk[-1].isdigit() else "[0-9]{1,3}"
        if re.fullmatch(re.escape(disk) + number, device):
            return disk
    return device
