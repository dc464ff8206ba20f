# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rate of a run's loads is a share of what the untuned host answers before half of its answers are late."""

from __future__ import annotations

import math
from typing import Any, Dict, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.tools.registry import load_of, named
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._prove import inputs, knee

CLIENT = {"part": "client", "server": "10.0.0.12"}
MOST = 10000.0  # requests a second of a server whose answers wait in one queue
GIVEN = {"benchmark": "cache", "benchmark_options": CLIENT, "at_knee": 80, "reboot": False, "seconds": 2.0}


def queue(asked: List[float]) -> Any:
    def run(load: str) -> Dict[str, Any]:
        rate = 2.0 * named(load)[1]["rate"]  # by two clients
        asked.append(rate)
        us = 1e6 * math.log(2) / max(1.0, 1.1 * MOST - (rate or MOST))
        figures = f"get {0.9 * (rate or MOST)} 1/s larger\nset {0.1 * (rate or MOST)} 1/s larger\np99 9 ms smaller\n"
        return {"code": 0, "end": "", "output": figures, "histograms": {"get_": [[us, 90]], "set_": [[us, 10]]}}

    return run


def test_the_loads_offer_a_share_of_the_rate_at_which_half_of_the_answers_become_late() -> None:
    asked: List[float] = []
    said: List[str] = []
    load = knee.load_at(80, load_of("key_value", CLIENT, 2.0), 2, queue(asked), said.append)
    # At 8,000 the median is 7/3 of that at 4,000, and at 9,000 it is 7/2.
    assert asked == [0, 0, 0, 4000, 5000, 6000, 7000, 8000, 9000, 10000]
    assert said == [
        "knee of the untuned host: 8,000 of at most 10,000 requests a second; the loads offer 80 % of it, 6,400"
    ]
    name, options = named(load)
    assert (name, options["rate"], options["server"], options["seconds"]) == ("key_value", 3200, "10.0.0.12", 2.0)


def test_late_answers_decide_where_the_rate_is_fixed() -> None:
    assert inputs.settings(GIVEN).primary == "p99"
    assert inputs.settings({**GIVEN, "primary": "requests"}).primary == "requests"
    assert inputs.settings({**GIVEN, "at_knee": 0}).primary == ""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"benchmark": "network"},
            "prove.at_knee finds the rate of a benchmark that can hold one, key_value, web, cache",
        ),
        ({"benchmark": None}, "prove.at_knee finds the rate of a benchmark that can hold one, "),
        ({"benchmark_options": {"rate": 5}}, "prove.at_knee finds the rate of a benchmark that can hold one, "),
        ({"reboot": True}, "prove.at_knee and prove.reboot exclude each other: "),
    ],
)
def test_a_load_that_can_t_hold_a_rate_has_no_knee(options: Dict[str, Any], words: str) -> None:
    with pytest.raises(NearmetalError) as raised:
        inputs.settings({**GIVEN, **options})
    assert str(raised.value).startswith(words)


def test_a_load_that_fails_ends_it() -> None:
    failing = {"code": 1, "end": "", "message": "client-1: no route"}
    with pytest.raises(NearmetalError, match=r"^the knee of the untuned host can't be found: client-1: no route$"):
        knee.load_at(80, load_of("web", CLIENT, 2.0), 1, lambda _load: failing, lambda _line: None)
