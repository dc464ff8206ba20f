# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guards of a host: each has a limit and can be switched off."""

from __future__ import annotations

from typing import Any, Dict, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._rollout import guards

BEFORE: Dict[str, Any] = {
    "boot_id": "a",
    "uptime": 1000.0,
    "sequence": 50,
    "kernel": [[40, "io_error", "I/O error, dev sda"]],
    "failed_units": ["old.service"],
    "retransmitted": 10,
    "segments": 10000,
    "softnet_dropped": 0,
    "allowances": 0.0,
    "steal": 100,
    "cpu_time": 100000,
}
LATER = {**BEFORE, "uptime": 1600.0, "sequence": 60, "segments": 20000, "retransmitted": 20, "cpu_time": 160000}
HARM = [
    ("failed_units", {"failed_units": ["old.service", "redis.service"]}, "failed_units: redis.service"),
    ("oops", {"kernel": [[55, "oops", "BUG: unable to handle page fault"]]}, "oops: BUG: unable to handle page fault"),
    ("nic_reset", {"kernel": [[55, "nic_reset", "ena: Trigger reset"]]}, "nic_reset: ena: Trigger reset"),
    ("oom", {"kernel": [[55, "oom", "Out of memory: Killed process 7"]]}, "oom: Out of memory: Killed process 7"),
    (
        "retransmits",
        {"retransmitted": 510},
        "retransmits: 5 % of the segments, 0.1 before; 1 more is allowed",
    ),
    ("softnet_drops", {"softnet_dropped": 60000}, "softnet_drops: 100 a second, 0 before; 10 more is allowed"),
    ("allowances", {"allowances": 60000.0}, "allowances: 100 a second, 0 before; 10 more is allowed"),
    ("steal", {"steal": 6100}, "steal: 10 %, 0.1 before; 5 more is allowed"),
]


def test_a_host_that_does_as_before_fires_nothing() -> None:
    assert guards.fired(guards.limits_of({}), BEFORE, LATER) == []


@pytest.mark.parametrize(("guard", "change", "words"), HARM)
def test_each_guard_fires_names_itself_and_can_be_switched_off(guard: str, change: Dict[str, Any], words: str) -> None:
    after = {**LATER, **change}
    assert guards.fired(guards.limits_of({}), BEFORE, after) == [words]
    assert guards.fired(guards.limits_of({guard: False}), BEFORE, after) == []
    assert guards.fired(guards.limits_of({guard: 1000}), BEFORE, after) == []


def test_after_a_reboot_the_counters_and_the_log_begin_anew() -> None:
    after = {**LATER, "boot_id": "b", "uptime": 60.0, "retransmitted": 1, "segments": 500, "cpu_time": 6000, "steal": 1}
    assert guards.fired(guards.limits_of({}), BEFORE, {**after, "kernel": []}) == []
    fired: List[str] = guards.fired(guards.limits_of({}), BEFORE, {**after, "kernel": [[3, "oops", "BUG: early"]]})
    assert fired == ["oops: BUG: early"]


def test_what_a_host_doesnt_say_fires_nothing() -> None:
    assert guards.fired(guards.limits_of({}), {**BEFORE, "segments": None}, {**LATER, "softnet_dropped": None}) == []


@pytest.mark.parametrize("given", [{"stael": 1}, {"steal": -1}, {"steal": True}, {"steal": "5"}])
def test_a_wrong_guard_or_limit_is_said(given: Dict[str, Any]) -> None:
    with pytest.raises(NearmetalError, match=r"rollout\.guards"):
        guards.limits_of(given)
