# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""kernel_check: counts since boot that tell of too little room in a queue or in memory. Pure. PRIVATE.

They are averages: a short burst hardly shows, and what was repaired since boot still does.
"""

from __future__ import annotations

from typing import List, Mapping, Optional, Tuple

from ..._facts.counters import CounterFacts, Swap
from ..._plan import Plan, joined
from ..._planning.knob import Knob

CONCERN = "kernel_check"
_LOST = Knob(CONCERN, "backlog_drops", reference="Mathis et al., 1997; Linux kernel, net/core/net-procfs.c")
_ROUNDS = Knob(CONCERN, "receive_rounds", reference="Linux kernel, net/core/dev.c")
_CONNECTIONS = Knob(CONCERN, "connections", reference="Linux kernel, net/ipv4/tcp_input.c; RFC 6298")
_FILES = Knob(CONCERN, "open_files", reference="Linux kernel, sysctl/fs")
_COMPACTION = Knob(CONCERN, "compaction", reference="Linux kernel, transhuge")
_SWAP = Knob(CONCERN, "swap", reference="Linux kernel, sysctl/vm")
_MISSES = Knob(CONCERN, "memory_misses", reference="Linux kernel, numastat")
KNOBS = (_LOST, _ROUNDS, _CONNECTIONS, _FILES, _COMPACTION, _SWAP, _MISSES)

# Of 100,000 packets one lost, with a round trip of 1 ms and segments of 1,460 bytes, lets TCP reach 4.5 Gbit/s (Mathis
# et al., 1997: 1.22 × segment / (round trip × √loss)), about what EC2 gives a single flow (5 Gbit/s).
_PACKETS_PER_LOSS = 100_000
# A round ends after 300 packets (netdev_budget) or two ticks; one such end in 1,000 packets is up to a third of them.
_PACKETS_PER_ROUND = 1_000
# A client tries again after a second (RFC 6298), so one connection in 10,000 shows in the 99.99th percentile.
_CONNECTIONS_PER_OVERFLOW = 10_000
_FULL_PERCENT = 80
_SECONDS_PER_EVENT = 60
_MISSES_PER_MILLE = 10
_UNMEASURED = "our limit, unmeasured"


def pressure(counters: CounterFacts) -> Plan:
    """A finding per count."""
    return joined(
        _lost(counters),
        _rounds(counters),
        _connections(counters),
        _files(counters.files),
        _compaction(counters),
        _swap(counters),
        _misses(counters.misses),
    )


def _lost(counters: CounterFacts) -> Plan:
    if counters.softnet is None:
        return _LOST.says("unknown", "/proc/net/softnet_stat can't be read")
    dropped, received = counters.softnet.dropped, counters.received
    limit = f"1 in {_PACKETS_PER_LOSS:,}"
    if not dropped:
        return _LOST.says("ok", "since boot no packet was lost because a CPU's queue was full", "none", limit)
    if received is None:
        return _LOST.says("unknown", f"{dropped:,} packets were lost; how many arrived isn't known", dropped, limit)
    share = _one_in(dropped, received)
    if dropped * _PACKETS_PER_LOSS <= received:
        reason = f"few of the packets since boot were lost in a CPU's queue ({_UNMEASURED})"
        return _LOST.says("ok", reason, share, limit)
    reason = (
        "packets were lost in a CPU's queue, where RPS, tunnels and loopback put them: spread them over more CPUs"
        f" (network_irq), or lengthen the queue (network_stack: netdev_max_backlog); {limit} is {_UNMEASURED}: at"
        " that loss a flow with a round trip of 1 ms reaches 4.5 Gbit/s, about what EC2 gives one flow"
    )
    return _LOST.says("advice", reason, share, limit)


def _rounds(counters: CounterFacts) -> Plan:
    if counters.softnet is None or counters.received is None:
        return _ROUNDS.says("unknown", "/proc/net/softnet_stat or /proc/net/dev can't be read")
    squeezed, received = counters.softnet.squeezed, counters.received
    share, limit = _one_in(squeezed, received), f"1 in {_PACKETS_PER_ROUND:,}"
    if squeezed * _PACKETS_PER_ROUND <= received:
        return _ROUNDS.says("ok", "the kernel seldom stops receiving with packets left", share, limit)
    reason = (
        "the kernel often stops receiving with packets left, because a round reached its limit: a CPU can't keep up;"
        " spread the interrupts (network_irq), then raise netdev_budget (network_stack); a round takes up to 300"
        f" packets, so {limit} packets may concern a third of them ({_UNMEASURED})"
    )
    return _ROUNDS.says("advice", reason, share, limit)


def _connections(counters: CounterFacts) -> Plan:
    listening = counters.listening
    if listening is None:
        return _CONNECTIONS.says("unknown", "/proc/net/netstat or /proc/net/snmp can't be read")
    share, limit = _one_in(listening.overflows, listening.accepted), f"1 in {_CONNECTIONS_PER_OVERFLOW:,}"
    more = listening.drops > listening.overflows
    also = "; more were dropped for other reasons, such as too little memory" if more else ""
    if listening.overflows * _CONNECTIONS_PER_OVERFLOW <= listening.accepted:
        return _CONNECTIONS.says("ok", f"listening sockets had room for nearly all connections{also}", share, limit)
    reason = (
        "connections found no room in the queue of a listening socket, and their clients tried again a second later:"
        " let the service accept faster or in more threads, and raise its backlog and network_stack's somaxconn;"
        f" {limit} connections is what the 99.99th percentile shows ({_UNMEASURED}){also}"
    )
    return _CONNECTIONS.says("advice", reason, share, limit)


def _files(files: Optional[Tuple[int, int]]) -> Plan:
    if files is None:
        return _FILES.says("unknown", "/proc/sys/fs/file-nr can't be read")
    used, most = files
    share, limit = f"{used * 100 / max(1, most):.1f} %", f"{_FULL_PERCENT} %"
    if used * 100 <= most * _FULL_PERCENT:
        return _FILES.says("ok", f"at most {_FULL_PERCENT} % of fs.file-max are open", share, limit)
    reason = (
        f"more than {_FULL_PERCENT} % of fs.file-max ({most}) are open; at the limit nobody but root can open a file or"
        f" take a connection: find out who holds them, or raise fs.file-max ({_UNMEASURED})"
    )
    return _FILES.says("advice", reason, share, limit)


def _one_in(part: int, whole: int) -> str:
    """A share in the words of its limit."""
    return f"1 in {round(whole / part):,}" if part else "none"


def _rate(events: int, seconds: int) -> str:
    return f"{events * 60 / max(1, seconds):.2f} a minute"


def _seldom(events: int, seconds: int) -> bool:
    return events * _SECONDS_PER_EVENT <= seconds


def _compaction(counters: CounterFacts) -> Plan:
    stalls = counters.memory.get("compact_stall")
    if stalls is None or counters.seconds is None:
        return _COMPACTION.says("unknown", "/proc/vmstat has no compact_stall, or /proc/uptime can't be read")
    rate, limit = _rate(stalls, counters.seconds), "1 a minute"
    if _seldom(stalls, counters.seconds):
        return _COMPACTION.says("ok", "processes seldom wait while the kernel compacts memory", rate, limit)
    reason = (
        "more than once a minute a process waits while the kernel compacts memory for a huge page: set"
        f" hugepages' thp_defrag to defer, or thp to madvise ({limit} is {_UNMEASURED})"
    )
    return _COMPACTION.says("advice", reason, rate, limit)


def _swap(counters: CounterFacts) -> Plan:
    areas, pages = counters.swaps, counters.memory.get("pswpin")
    if areas is None:
        return _SWAP.says("unknown", "/proc/swaps can't be read")
    on_disk = [area for area in areas if not area.device.startswith("zram")]
    if not on_disk:
        return _SWAP.says("ok", "nothing is swapped to a disk")
    if pages is None or counters.seconds is None:
        return _SWAP.says("unknown", "/proc/vmstat has no pswpin, or /proc/uptime can't be read", _named(on_disk))
    rate, limit = _rate(pages, counters.seconds), "1 a minute"
    if _seldom(pages, counters.seconds):
        return _SWAP.says("ok", "pages are seldom read back from swap", rate, limit)
    busy = [f"; {area.device}'s disk was in use {area.busy / 10:.0f} % of the time" for area in on_disk if area.busy]
    reason = (
        f"pages are read back from swap on {_named(on_disk)}, and each time a process waits for the disk: give the host"
        f" more memory or its services less, or move swap to instance storage or zram ({limit} is {_UNMEASURED})"
    )
    return _SWAP.says("advice", reason, rate + "".join(busy), limit)


def _named(areas: List[Swap]) -> str:
    return " and ".join(sorted({area.device or "a file" for area in areas}))


def _misses(misses: Mapping[str, int]) -> Plan:
    if len(misses) < 2:
        return Plan()
    worst = {node: missed for node, missed in misses.items() if missed > _MISSES_PER_MILLE}
    limit = f"{_MISSES_PER_MILLE / 10:.0f} %"
    if not worst:
        return _MISSES.says("ok", "nearly all memory came from the node that was asked for it", None, limit)
    reason = (
        "processes asked for memory of a node that had none left, and got it from another: bind services to nodes with"
        f" numa's services, or let them use less ({_UNMEASURED})"
    )
    shares = {node: f"{missed / 10:.1f} %" for node, missed in worst.items()}
    return _MISSES.says("advice", reason, shares, limit)
