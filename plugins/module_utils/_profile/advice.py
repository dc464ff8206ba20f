# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a profile a setting could change, and which. Pure. PRIVATE to the collection.

The functions are those of Linux 4.14 to 6.18; the shares from which one is worth a sentence are ours, unmeasured.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple

from .folding import KERNEL_MARK, Tree

_IRQ_LOAD = 0.5  # of a CPU's time, from which its interrupts are worth a sentence
_UNEVEN = 4  # times the mean of the other CPUs
_WAITING = 1.5  # threads that want to run, for each CPU
_STOLEN = 0.01
_REMOTE = 0.05  # of the pages that programs got
_RETRANSMITTED = 0.01  # of the segments: a hundred times what a network in a region loses


class Rule(NamedTuple):
    """A kind of work of the kernel, by the functions that do it."""

    name: str
    functions: str  # separated by spaces; any of them is enough, `caller>function` where this caller called it
    least: float  # share of the samples
    says: str
    knob: str  # concern.option; empty: nearmetal has none


RULES = (
    Rule(
        "clock_reads",
        "__x64_sys_clock_gettime __x64_sys_gettimeofday __arm64_sys_clock_gettime __se_sys_clock_gettime"
        " read_hpet acpi_pm_read xen_clocksource_get_cycles",
        0.01,
        "programs read the clock by a system call or from a slow device",
        "clocksource.source",
    ),
    Rule(
        "compaction",
        "compact_zone try_to_compact_pages isolate_migratepages_block",
        0.01,
        "the kernel moves memory together to get huge pages",
        "hugepages.thp_defrag",
    ),
    Rule(
        "huge_page_clearing",
        "clear_huge_page folio_zero_user do_huge_pmd_anonymous_page",
        0.03,
        "the kernel clears huge pages, all of each at once",
        "hugepages.thp",
    ),
    Rule(
        "small_pages",
        # The compiler may make it a part of its caller, as in Debian's Linux 6.1.
        "do_anonymous_page __handle_mm_fault>vma_alloc_folio __handle_mm_fault>alloc_pages_vma",
        0.05,
        "programs touch fresh memory page by page: huge pages are fewer",
        "hugepages.thp",
    ),
    Rule(
        "spinning",
        "native_queued_spin_lock_slowpath queued_spin_lock_slowpath pv_queued_spin_lock_slowpath osq_lock"
        " mutex_spin_on_owner rwsem_spin_on_owner",
        0.03,
        "CPUs wait for each other's locks; their callers on the page say for which",
        "",
    ),
    Rule(
        "numa_moves",
        "do_numa_page task_numa_work migrate_misplaced_folio migrate_misplaced_page",
        0.01,
        "the kernel moves memory to the node that uses it",
        "numa.balancing",
    ),
    Rule(
        "pv_page_tables",
        "xen_mc_flush xen_set_pte xen_set_pte_at xen_set_pmd xen_pin_page",
        0.01,
        "page tables are changed by the hypervisor, as of every PV guest: an HVM image does without",
        "",
    ),
)


def advice(tree: Tree, counters: Mapping[str, Any]) -> List[Dict[str, Optional[str]]]:
    """What is worth a sentence, as `name`, `says` and `knob`; the largest share first, then the counters."""
    found = []
    for rule in RULES:
        share = tree.share_of([_marked(name) for name in rule.functions.split()])
        if share >= rule.least:
            found.append((share, rule.name, f"{rule.says} ({share:.1%} of the samples)", rule.knob))
    found.sort(key=lambda row: -row[0])
    rows = [*(row[1:] for row in found), *_of_counters(counters)]
    return [_row(*row) for row in rows]


def grown(moved: Iterable[Tuple[str, float, float]]) -> List[Dict[str, Optional[str]]]:
    """The same of functions whose share a tuning changed, by name, share before and share after: of what grew."""
    shares = {name: (before, after) for name, before, after in moved if after > before}
    rows = []
    for rule in RULES:
        names = [name for name in rule.functions.split() if name + KERNEL_MARK in shares]
        if names:
            name = max(names, key=lambda name: shares[name + KERNEL_MARK][1])
            before, after = shares[name + KERNEL_MARK]
            says = f"the tuning made this more: {rule.says} ({name} from {before:.1%} to {after:.1%} of the samples)"
            rows.append(_row(rule.name, says, rule.knob))
    return rows


def _marked(name: str) -> str:
    return ">".join(part + KERNEL_MARK for part in name.split(">"))


def _row(name: str, says: str, knob: str) -> Dict[str, Optional[str]]:
    return {"name": name, "says": says, "knob": knob or None}


def _of_counters(counters: Mapping[str, Any]) -> List[Tuple[str, str, str]]:
    rows: List[Tuple[str, str, str]] = []
    loads = counters.get("interrupt_load") or {}
    busiest = counters.get("busiest_cpu")
    if busiest and len(loads) > 1:
        load = loads[str(busiest["cpu"])]
        others = (sum(loads.values()) - load) / (len(loads) - 1)
        if load >= _IRQ_LOAD and load >= _UNEVEN * others:
            most = next(iter(busiest["softirqs"]), "")
            what = f", most in {most}" if most else ""
            says = f"CPU {busiest['cpu']} spends {load:.0%} of its time on interrupts{what}; the others {others:.0%}"
            rows.append(("interrupts", says, "network_irq.rps"))
    runnable, cpus = counters.get("runnable", 0), counters.get("cpus", 0)
    if cpus and runnable > _WAITING * cpus:
        says = f"{runnable:.0f} threads wanted to run on {cpus} CPUs: fewer threads, or more CPUs"
        rows.append(("runnable", says, ""))
    if counters.get("steal", 0) > _STOLEN:
        says = f"other guests took {counters['steal']:.1%} of the CPUs' time"
        rows.append(("steal", says, "cpu_credits.specification"))
    pages, elsewhere = counters.get("numa_hit", 0), counters.get("numa_miss", 0)
    if elsewhere > _REMOTE * (pages + elsewhere):
        says = f"{elsewhere / (pages + elsewhere):.1%} of the pages came from another node than the one asked for"
        rows.append(("remote_memory", says, ""))
    for name, says, knob in (
        ("dropped", "packets were dropped because a CPU's queue was full", "network_stack.netdev_max_backlog"),
        ("squeezed", "rounds of receiving ended with packets left", "network_stack.netdev_budget"),
        ("listen_drops", "connections were dropped because a program took them too late", "network_stack.somaxconn"),
        ("pswpout", "pages were swapped out", "memory.swappiness"),
    ):
        if counters.get(name, 0) > 0:
            rows.append((name, f"{counters[name]:,} {says}", knob))
    sent = counters.get("sent", 0)
    if sent and counters.get("retransmitted", 0) > _RETRANSMITTED * sent:
        says = "of the segments were sent again: the audit's limits say whether the instance's network is the limit"
        rows.append(("retransmitted", f"{counters['retransmitted'] / sent:.1%} {says}", ""))
    return rows
