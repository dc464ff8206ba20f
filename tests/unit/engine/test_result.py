# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the result of a run says of a concern, and in check mode which changes only a write can promise."""

from __future__ import annotations

from pathlib import Path
from typing import Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.requests import tune_requests
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.result import contract
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.run import plan_run, run
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.session import Outcome
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.base import SetValues
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Finding, Plan

from tests.support.fresh_host import fresh

DOUBT = "; only the write shows whether the driver takes it"


def test_the_line_of_a_concern_whose_settings_are_right_doesn_t_begin_with_what_the_host_lacks(tmp_path: Path) -> None:
    host = fresh(tmp_path, "not_ec2")
    options = {"somaxconn": int((tmp_path / "proc/sys/net/core/somaxconn").read_text()), "adaptive_rx": "enabled"}
    asked = {"network_stack": {**options, "persist": False, "allow_not_ec2": True}}
    done = plan_run(host, lambda known: tune_requests((), asked, {}, known))
    assert contract(done.outcomes)["msg"] == "network_stack: as wanted (1 not applicable)"
    del asked["network_stack"]["somaxconn"]
    done = plan_run(host, lambda known: tune_requests((), asked, {}, known))
    assert contract(done.outcomes)["msg"].startswith("network_stack: not applicable: ")


@pytest.mark.parametrize("checks", [True, False])
def test_a_preview_names_the_changes_that_a_driver_may_refuse_and_a_run_none(tmp_path: Path, checks: bool) -> None:
    begin = plan_run if checks else run
    done = begin(fresh(tmp_path, "nitro"), lambda known: tune_requests(("low_latency",), {}, {}, known))
    findings = contract(done.outcomes)["findings"]
    doubtful = {finding["knob"] for finding in findings if finding["reason"].endswith(DOUBT)}
    assert doubtful == ({"adaptive_rx", "rx_usecs", "tx_usecs"} if checks else set())
    changed = {finding["knob"] for finding in findings if finding["status"] in ("would_change", "changed")}
    assert {"rx_usecs", "keepalive_time"} <= changed


@pytest.mark.parametrize(
    ("statuses", "line"),
    [
        (("ok", "not_applicable"), "x: as wanted (1 not applicable)"),
        (("not_applicable", "refused"), "x: refused: why"),
        (("ok", "unchangeable", "not_applicable"), "x: unchangeable: why"),
        (("ok", "unknown"), "x: unknown: why"),
        (("ok", "needs_reboot"), "x: needs a reboot"),
    ],
)
def test_a_concern_is_called_as_wanted_only_if_everything_is(statuses: Tuple[str, ...], line: str) -> None:
    plan = Plan(findings=tuple(Finding("x", f"k{number}", status, "why") for number, status in enumerate(statuses)))
    assert contract([Outcome("x", plan, done=True)])["msg"] == line


def test_an_element_that_left_while_it_was_written_does_not_hold_its_value() -> None:
    class Elements(SetValues):
        def elements(self, value: object, names: object = ()) -> "dict[str, object]":
            return dict(value) if isinstance(value, dict) else {}

    before, after = {"state1/0": "enabled"}, {"state1/0": "disabled"}
    assert Elements().applied(after, before, after)
    assert not Elements().applied({}, before, after)
