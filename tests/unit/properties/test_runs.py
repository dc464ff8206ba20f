# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""On every host, nothing is left to do after an apply, and restore brings everything back."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, List

from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.requests import restore_requests, tune_requests
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.run import Run, plan_run, run
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from hypothesis import given
from hypothesis import strategies as st

from tests.support import hosts
from tests.support.fake_kernel import CLOCK, FakeKernel, everything

SOURCES = ("tsc", "kvm-clock", "xen", "hpet", "acpi_pm")


@st.composite
def tuned_hosts(draw: st.DrawFn) -> Dict[str, Any]:
    """A host of any class whose kernel offers any sources in any order, and what is asked of it."""
    offered = draw(st.lists(st.sampled_from(SOURCES), min_size=1, unique=True))
    wanted: Dict[str, Any] = {"source": draw(st.sampled_from(["auto", "kernel", *offered]))}
    wanted["persist"] = draw(st.booleans())
    return {
        "name": draw(st.sampled_from(hosts.names())),
        "changes": {
            f"{CLOCK}/available_clocksource": " ".join(offered) + " \n",
            f"{CLOCK}/current_clocksource": draw(st.sampled_from(offered)) + "\n",
        },
        "asked": wanted,
    }


def tune(host: FakeKernel, concerns: Dict[str, Any], check: bool = False) -> Run:
    return (plan_run if check else run)(host, lambda _known: tune_requests([], concerns, {"allow_not_ec2": True}))


@given(tuned_hosts())
def test_apply_leaves_nothing_to_do_and_restore_is_identity(case: Dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        host = FakeKernel(Path(folder), hosts.files_of(case["name"], case["changes"]))
        before = everything(host)
        concerns = {"clocksource": case["asked"]}
        promised = tune(host, concerns, check=True)
        assert everything(host) == before, "check mode wrote"
        done = tune(host, concerns)
        assert not any(outcome.error for outcome in done.outcomes)
        assert [outcome.plan.actions for outcome in promised.outcomes] == [
            outcome.plan.actions for outcome in done.outcomes
        ]
        assert all(not outcome.plan.actions for outcome in tune(host, concerns, check=True).outcomes)
        run(host, lambda known: restore_requests(None, known))
        assert everything(host) == before


@given(st.lists(tuned_hosts(), min_size=1, max_size=4))
def test_any_number_of_runs_is_taken_back_at_once(cases: List[Dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        host = FakeKernel(Path(folder), hosts.files_of(cases[0]["name"], cases[0]["changes"]))
        before = everything(host)
        for case in cases:
            with suppress(NearmetalError):  # another case's source may not be offered on this host
                tune(host, {"clocksource": case["asked"]})
        run(host, lambda known: restore_requests(None, known))
        assert everything(host) == before
