# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several workloads on one host: the combined options, and the findings about contradictions."""

from __future__ import annotations

import re
from itertools import permutations
from typing import Any, Dict, List, Sequence, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.registry import CONCERNS
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.planning import Request, Tune
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.requests import tune_requests
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import program
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning import bounds, programs
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.options import validate
from ansible_collections.nearmetal.ec2.plugins.module_utils._requests import combined as module
from ansible_collections.nearmetal.ec2.plugins.module_utils._requests.combined import combined
from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads import base
from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads.registry import OWN, WORKLOADS
from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads.workload import Choice, inherited, values

PAIRS = list(permutations(sorted(WORKLOADS), 2))


def both(*names: str) -> Dict[str, Dict[str, Any]]:
    return combined(names, CONCERNS)[0]


def reasons(requests: Sequence[Request]) -> Dict[str, str]:
    tunes = [request for request in requests if isinstance(request, Tune)]
    return {f"{finding.concern}.{finding.knob}": finding.reason for request in tunes for finding in request.findings}


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_one_workload_is_itself_also_beside_base(name: str) -> None:
    alone = both(name)
    assert alone == values(WORKLOADS[name])
    assert both("base", name) == both(name, "base") == both(name, name) == alone
    assert combined([name, name], CONCERNS)[1] == combined(["base", name], CONCERNS)[1] == []


@pytest.mark.parametrize(("earlier", "later"), PAIRS)
def test_the_later_workload_wins_and_bounds_satisfy_both(earlier: str, later: str) -> None:
    found = both(earlier, later)
    first, second = values(WORKLOADS[earlier]), values(WORKLOADS[later])
    later_values = OWN.get(later, {})
    for concern in {*first, *second}:
        for option in {*first.get(concern, {}), *second.get(concern, {})}:
            value, kind = found[concern][option], CONCERNS[concern].bounds.get(option)
            values_of_both = [side[concern][option] for side in (first, second) if option in side.get(concern, {})]
            if kind is not None:
                assert value == both(later, earlier)[concern][option], f"{option} depends on their order"
                assert all(satisfied(kind, value, wanted_value) for wanted_value in values_of_both), (
                    f"{option}: {value} is too little for one"
                )
            elif option in later_values.get(concern, {}):
                assert value == later_values[concern][option].value
            else:
                assert value in values_of_both


def satisfied(kind: str, value: Any, wanted: Any) -> bool:
    if "max" in (value, wanted):
        return bool(value == "max")
    if kind == bounds.EVERY:
        return set(wanted) <= set(value)
    numbers, wanted_numbers = ([int(word) for word in str(text).split()] for text in (value, wanted))
    if kind == bounds.WIDEST:
        return numbers[0] <= wanted_numbers[0] and numbers[1] >= wanted_numbers[1]
    return all(a >= b if kind == bounds.LEAST else a <= b for a, b in zip(numbers, wanted_numbers))


@pytest.mark.parametrize(("earlier", "later"), PAIRS)
def test_options_of_two_workloads_are_accepted_by_every_concern(earlier: str, later: str) -> None:
    found = both(earlier, later)
    for concern in CONCERNS.values():
        if concern.name in found:
            validate(concern.name, concern.options, found[concern.name])


def test_at_least_values_take_the_larger_one_in_any_order() -> None:
    cases: List[Tuple[str, Any, Any, Any]] = [
        (bounds.LEAST, 4096, 8192, 8192),
        (bounds.LEAST, "4096 87380 6291456", "8192 16384 16777216", "8192 87380 16777216"),
        (bounds.LEAST, "4096", "max", "max"),
        (bounds.MOST, 300, 120, 120),
        (bounds.WIDEST, "10240 65535", "15000 65000", "10240 65535"),
        (bounds.EVERY, ["low_latency"], ["hpc"], ["hpc", "low_latency"]),
        (bounds.WIDEST, "10240 60999", "15000 65535", "10240 65535"),
    ]
    for kind, first, second, goal in cases:
        assert bounds.satisfying(kind, first, second) == bounds.satisfying(kind, second, first) == goal


def test_a_contradiction_names_both_values_and_how_to_decide() -> None:
    (sentence,) = [
        text for knob, text in reasons(tune_requests(["in_memory_database", "web"], {}, {})).items() if "thp" in knob
    ]
    assert sentence == (
        "in_memory_database wants never, web wants madvise: madvise is used, because web comes last;"
        " set tune_concerns.hugepages.thp to decide otherwise"
    )
    (sentence,) = [
        text
        for knob, text in reasons(tune_requests(["jvm", "in_memory_database", "web"], {}, {})).items()
        if "thp" in knob
    ]
    assert sentence.startswith("jvm and web want madvise, in_memory_database wants never: madvise is used")


def test_an_inherited_value_is_replaced_without_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    custom = {"clocksource": {"source": Choice("tsc", "measured", "AWS, 2017")}}
    monkeypatch.setattr(module, "OWN", {**OWN, "made_up": custom})
    monkeypatch.setattr(module, "WORKLOADS", {**WORKLOADS, "made_up": inherited(base.OWN, custom)})
    for names in (["made_up", "cache"], ["cache", "made_up"]):
        found, contradictions = combined(names, CONCERNS)
        assert found["clocksource"] == {"source": "tsc"}
        assert contradictions == []


@pytest.mark.parametrize(
    "decided",
    [
        {"concerns": {"hugepages": {"thp": "never"}}},
        {"exclude": ["hugepages.thp"]},
        {"workload_concerns": {"hugepages": {"thp": "always"}}},
    ],
    ids=["set", "excluded", "spelled out"],
)
def test_a_decided_knob_is_no_contradiction(decided: Dict[str, Any]) -> None:
    requests = tune_requests(["in_memory_database", "web"], **{"concerns": {}, "common": {}, **decided})
    assert "hugepages.thp" not in reasons(requests)


def test_values_of_several_workloads_are_no_users() -> None:
    """So they stay *at least* values, and the host's larger values win."""
    (request,) = [request for request in tune_requests(["web", "cache"], {}, {}) if request.name == "network_stack"]
    assert isinstance(request, Tune)
    assert {request.wanted.by[option] for option in ("somaxconn", "busy_poll", "port_range")} == {"workload"}


def test_every_program_is_a_sign_of_a_workload_with_a_reason() -> None:
    assert sorted(programs.SIGNS) == sorted(program.names())
    for sign in programs.SIGNS.values():
        assert sign.workload in OWN
        assert re.fullmatch(r"[A-Za-z][A-Za-z ,]{8,80}", sign.reason)


def test_signs_of_one_workload_stand_together() -> None:
    """Their order is the order in which workloads are combined."""
    order: List[str] = [sign.workload for sign in programs.SIGNS.values()]
    assert order == [name for name in dict.fromkeys(order) for _each in range(order.count(name))]
