# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Advice names what is seen and a setting that exists, and of a host at peace there is none."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Dict, Optional

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.registry import CONCERNS
from ansible_collections.nearmetal.ec2.plugins.module_utils._profile.advice import RULES, advice, grown
from ansible_collections.nearmetal.ec2.plugins.module_utils._profile.folding import Tree

PAGE = Path(__file__).parents[3] / "docs/profile.md"
QUIET: Dict[str, Any] = {
    "cpus": 4,
    "runnable": 3.0,
    "steal": 0.001,
    "interrupt_load": {"0": 0.1, "1": 0.02, "2": 0.02, "3": 0.02},
    "busiest_cpu": {"cpu": 0, "interrupts": {}, "softirqs": {"NET_RX": 9}},
    "dropped": 0,
    "squeezed": 0,
    "sent": 10000,
    "retransmitted": 3,
}


def tree(**shares: int) -> Tree:
    """A program with these functions of the kernel, in percent of the samples."""
    names = ["db", *(f"{name}_[k]" for name in shares)]
    own = [100 - sum(shares.values()), *shares.values()]
    return Tree(names, [0] + [1] * len(shares), list(range(len(names))), own)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.functions.split()[0])
def test_each_kind_of_work_is_seen_by_any_of_its_functions(rule: Any) -> None:
    for function in rule.functions.split():
        path = ["db", *(f"{name}_[k]" for name in function.split(">"))]
        own = [80, *[0] * (len(path) - 2), 20]
        (found,) = advice(Tree(path, range(len(path)), range(len(path)), own), QUIET)
        assert found == {"name": rule.name, "says": f"{rule.says} (20.0% of the samples)", "knob": rule.knob or None}
    assert advice(tree(do_user_addr_fault=20), QUIET) == []


def test_an_allocation_is_one_of_small_pages_by_its_caller() -> None:
    for caller, seen in (("__handle_mm_fault", ["small_pages"]), ("wp_page_copy", [])):
        path = ["db", f"{caller}_[k]", "vma_alloc_folio_[k]", "get_page_from_freelist_[k]"]
        assert [row["name"] for row in advice(Tree(path, range(4), range(4), [80, 0, 0, 20]), QUIET)] == seen


def test_a_function_within_another_counts_once() -> None:
    nested = Tree(["db", "clear_huge_page_[k]", "do_huge_pmd_anonymous_page_[k]"], [0, 1, 2], [0, 2, 1], [90, 4, 6])
    (found,) = advice(nested, QUIET)
    assert "10.0%" in str(found["says"])


@pytest.mark.parametrize(
    ("counted", "says", "knob"),
    [
        (
            {"interrupt_load": {"0": 0.03, "1": 0.8}, "busiest_cpu": {"cpu": 1, "softirqs": {"NET_RX": 9}}},
            "CPU 1 spends 80% of its time on interrupts, most in NET_RX; the others 3%",
            "network_irq.rps",
        ),
        ({"interrupt_load": {"0": 0.7, "1": 0.8}, "busiest_cpu": {"cpu": 1, "softirqs": {}}}, "", None),
        ({"interrupt_load": {"0": 0.8}, "busiest_cpu": {"cpu": 0, "softirqs": {}}}, "", None),
        ({"runnable": 12.0}, "12 threads wanted to run on 4 CPUs", None),
        ({"steal": 0.08}, "other guests took 8.0% of the CPUs' time", "cpu_credits.specification"),
        ({"dropped": 3}, "3 packets were dropped", "network_stack.netdev_max_backlog"),
        ({"squeezed": 1234}, "1,234 rounds of receiving", "network_stack.netdev_budget"),
        ({"listen_drops": 5}, "5 connections were dropped", "network_stack.somaxconn"),
        ({"pswpout": 7}, "7 pages were swapped out", "memory.swappiness"),
        ({"retransmitted": 500}, "5.0% of the segments were sent again", None),
        ({"numa_hit": 900, "numa_miss": 100}, "10.0% of the pages came from another node", None),
        ({"numa_hit": 999, "numa_miss": 1}, "", None),
        ({}, "", None),
    ],
)
def test_each_counter_speaks(counted: Dict[str, Any], says: str, knob: Optional[str]) -> None:
    found = advice(tree(), {**QUIET, **counted})
    assert len(found) == bool(says)
    assert all(str(row["says"]).startswith(says) and row["knob"] == knob for row in found)


def test_a_lock_that_the_tuning_made_hotter_is_named() -> None:
    lock = "native_queued_spin_lock_slowpath_[k]"
    [row] = grown([(lock, 0.02, 0.09), ("osq_lock_[k]", 0.0, 0.01), ("read_hpet_[k]", 0.4, 0.0), ("look_up", 0.1, 0.5)])
    assert (row["name"], row["knob"]) == ("spinning", None)
    assert str(row["says"]).startswith("the tuning made this more: CPUs wait for each other's locks")
    assert str(row["says"]).endswith("(native_queued_spin_lock_slowpath from 2.0% to 9.0% of the samples)")


def test_a_host_that_says_nothing_gets_no_advice() -> None:
    assert advice(tree(), {}) == []


def test_each_setting_exists_and_is_on_the_page() -> None:
    source = Path(advice.__code__.co_filename).read_text("utf-8")
    named = set(re.findall(r'"([a-z_]+\.[a-z_]+)"', source))
    options = {f"{name}.{option}" for name, concern in CONCERNS.items() for option in concern.options}
    assert named - {"cpu_credits.specification"} <= options
    assert named <= set(re.findall(r"`([a-z_]+\.[a-z_]+)`", PAGE.read_text("utf-8")))
    assert len(named) == 10
