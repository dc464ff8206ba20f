# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What several programs make of the options of a workload."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.registry import CONCERNS
from ansible_collections.nearmetal.ec2.plugins.module_utils._programs.program import Page, Wish
from ansible_collections.nearmetal.ec2.plugins.module_utils._programs.registry import NAMES, program_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._requests.combined import combined
from ansible_collections.nearmetal.ec2.plugins.module_utils._requests.program_values import (
    Asked,
    Claim,
    asked,
    overruled,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads.registry import WORKLOADS

PAGE = Page("a page", "2026-11-27", "2027-11-27")


def claim(title: str, knob: str, value: Any, **more: Any) -> Claim:
    return Claim(title, Wish(knob, value, "it says so", PAGE, **more))


def merged(of_workload: Dict[str, Any], *claims: Claim) -> Asked:
    concern = claims[0].wish.knob.partition(".")[0]
    return asked(claims, CONCERNS[concern], of_workload, lambda _option, _value: "web")


@pytest.mark.parametrize("first", [0, 1])
def test_of_limits_the_value_that_satisfies_all_is_used_in_any_order(first: int) -> None:
    claims = [claim("A", "network_stack.somaxconn", 1000), claim("B", "network_stack.somaxconn", 9000)]
    found = merged({"somaxconn": 4096}, claims[first], claims[1 - first])
    assert found.values == {"somaxconn": 9000}
    assert found.reasons["somaxconn"] == ("web says 4096, B's maintainers say 9000: it says so", "a page")
    assert found.contradictions == ()
    assert merged({"somaxconn": 9000}, *claims).values == {}, "the workload's value suits both"


def test_a_workloads_exact_value_stays_where_it_suits_every_program() -> None:
    claims = (claim("A", "hugepages.thp", "never", also=("madvise",)), claim("B", "hugepages.thp", "madvise"))
    assert merged({"thp": "madvise"}, *claims).values == {}
    assert merged({"thp": "always"}, *claims).values == {"thp": "madvise"}
    assert merged({}, claims[1], claims[0]).reasons["thp"][0] == "B's maintainers say madvise: it says so"


def test_an_exact_value_of_a_limit_wins_over_those_that_only_want_enough() -> None:
    claims = (
        claim("A", "block_storage.read_ahead_kb", 4, exact=True),
        claim("B", "block_storage.read_ahead_kb", 512),
    )
    found = merged({"read_ahead_kb": 1024}, *claims)
    assert (found.values, found.exact) == ({"read_ahead_kb": 4}, {"read_ahead_kb"})


@pytest.mark.parametrize("first", [0, 1])
def test_a_limit_that_an_exact_value_breaks_is_a_contradiction(first: int) -> None:
    claims = [claim("A", "memory.swappiness", 0), claim("B", "memory.swappiness", 1, exact=True)]
    found = merged({}, claims[first], claims[1 - first])
    assert found.values == {"swappiness": 1}
    (contradiction,) = found.contradictions
    assert contradiction.sentence().startswith(
        "A wants 0, B wants 1: 1 is used, because B wants exactly that; set tune_concerns.memory.swappiness"
    )
    enough = claim("C", "memory.swappiness", 10)
    assert merged({}, claims[1], enough).contradictions == (), "1 is at most 10"


VERSIONS = [f"{name}={version}" for name in NAMES for version in ("0", "9999") if program_of(name).wishes]


def claims_of(word: str) -> List[Claim]:
    name, _equals, version = word.partition("=")
    return [Claim(name, wish) for wish in program_of(name).asks(version, "aarch64")[0]]


def unsaid(claims: Sequence[Claim], workload: str) -> List[Tuple[str, Any]]:
    """The wishes that what is set goes against, and of which no finding says so."""
    of_workloads, _contradictions = combined([workload], CONCERNS)
    left = []
    for name in {claim.wish.knob.partition(".")[0] for claim in claims}:
        concern = CONCERNS[name]
        found = asked(claims, concern, of_workloads.get(name, {}), lambda _option, _value: workload)
        final = {**of_workloads.get(name, {}), **found.values}
        said = {contradiction.option for contradiction in found.contradictions}
        against = {option for option in final if overruled(claims, concern, {option: final[option]})}
        left += [(f"{name}.{option}", final[option]) for option in against - said]
    return left


@pytest.mark.parametrize("workload", WORKLOADS)
def test_no_workload_sets_what_a_program_asks_against(workload: str) -> None:
    assert {word: unsaid(claims_of(word), workload) for word in VERSIONS if unsaid(claims_of(word), workload)} == {}


@pytest.mark.parametrize("word", VERSIONS)
def test_of_two_programs_each_has_what_it_asks_for_or_a_finding_says_why_not(word: str) -> None:
    name = word.partition("=")[0]
    others = [other for other in VERSIONS if other.partition("=")[0] != name]
    left = {other: unsaid([*claims_of(word), *claims_of(other)], "base") for other in others}
    assert {other: found for other, found in left.items() if found} == {}


OWN = [
    # what a program wants, a user's value, and whether the finding says that they differ
    (claim("A", "memory.swappiness", 1), 5, True),
    (claim("A", "memory.swappiness", 1), 0, False),
    (claim("A", "memory.swappiness", 1, exact=True), 0, True),
    (claim("A", "network_stack.somaxconn", 4096), 1024, True),
    (claim("A", "network_stack.somaxconn", 4096), 65535, False),
    (claim("A", "hugepages.thp", "never", also=("madvise",)), "always", True),
    (claim("A", "hugepages.thp", "never", also=("madvise",)), "madvise", False),
    (claim("A", "network_stack.rx_ring", "1024", exact=True), "max", True),
    (claim("A", "network_stack.rx_ring", "1024"), "max", False),
]


@pytest.mark.parametrize(("wanted", "own", "differs"), OWN)
def test_a_users_own_value_that_a_program_asks_against_is_said(wanted: Claim, own: Any, differs: bool) -> None:
    concern, _dot, option = wanted.wish.knob.partition(".")
    said = overruled([wanted], CONCERNS[concern], {option: own})
    sentence = f"you say {own}, A's maintainers say {wanted.wish.value}: it says so"
    assert said == ({option: (sentence, "a page")} if differs else {})
    assert overruled([wanted], CONCERNS[concern], {}) == {}


def test_programs_without_a_common_value_contradict_each_other() -> None:
    found = merged({"thp": "madvise"}, claim("A", "hugepages.thp", "never"), claim("B", "hugepages.thp", "always"))
    assert found.values == {"thp": "always"}
    (contradiction,) = found.contradictions
    assert contradiction.sentence() == (
        "A wants never, B wants always: always is used, because B comes last; set tune_concerns.hugepages.thp to decide"
        " otherwise, leave one of them out of tune_program, or give each a host of its own"
    )
