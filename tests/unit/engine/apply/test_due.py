# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What another concern of the run has restored meanwhile is neither written again nor reported as changed."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.apply import apply
from ansible_collections.nearmetal.ec2.plugins.module_utils._memory.journal import Journal
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action

from tests.support.fake_kernel import CLOCK, FakeKernel
from tests.support.hosts import files_of

CURRENT = f"{CLOCK}/current_clocksource"


def test_a_place_that_has_its_value_by_now_is_left_and_gets_no_entry(tmp_path: Path) -> None:
    host = FakeKernel(tmp_path, files_of("xen_hvm", {CURRENT: "xen\n"}))
    back = Action("clocksource", "source", "clock.current", "tsc", "xen", "no longer wanted", "journal")
    journal = Journal(host, None)
    assert apply(host, journal, [back], list) == []
    assert host.written == []
    assert journal.entries() == []


def test_a_place_that_nearmetal_has_an_entry_of_is_written_and_settled(tmp_path: Path) -> None:
    host = FakeKernel(tmp_path, files_of("xen_hvm", {CURRENT: "xen\n"}))
    there = Action("clocksource", "source", "clock.current", "xen", "tsc", "read in user space", "AWS, 2017")
    back = there._replace(before="tsc", after="xen")
    journal = Journal(host, None)
    apply(host, journal, [there], list)
    assert [entry.original for entry in journal.entries()] == ["xen"]
    assert [action.after for action in apply(host, journal, [back], list)] == ["xen"]
    assert journal.entries() == []
