# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The draw of a rollout: a coin, not the inventory, and each batch has its share of each stratum."""

from __future__ import annotations

from collections import Counter
from typing import Any, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._rollout.draw import batch_ends, draw, strata_of

FLEET = {f"h{number:03}": "web a" if number < 300 else "web b" if number < 390 else "db" for number in range(400)}


def test_the_same_seed_draws_the_same_order_whatever_the_inventory_order_is() -> None:
    assert draw(7, FLEET) == draw(7, dict(reversed(list(FLEET.items()))))
    assert draw(7, FLEET) != draw(8, FLEET)
    assert sorted(draw(7, FLEET)) == sorted(FLEET)


def test_each_batch_has_about_its_share_of_each_stratum() -> None:
    for seed in range(50):
        drawn = Counter(FLEET[host] for host in draw(seed, FLEET)[:40])
        assert abs(drawn["web a"] - 30) <= 1
        assert abs(drawn["web b"] - 9) <= 1


def test_each_host_of_a_stratum_is_as_likely_to_be_the_first() -> None:
    firsts = Counter(next(host for host in draw(seed, FLEET) if FLEET[host] == "db") for seed in range(1000))
    assert len(firsts) == 10
    assert min(firsts.values()) >= 60
    assert max(firsts.values()) <= 145


def test_hosts_that_are_alone_in_their_stratum_are_compared_with_each_other() -> None:
    strata = {"a": "1", "b": "2", "c": "3", "d": "3"}
    order = ["a", "b", "c", "d"]
    numbers = strata_of(strata, order)
    assert numbers[0] == numbers[1] != numbers[2] == numbers[3]


@pytest.mark.parametrize(
    ("batches", "hosts", "ends"),
    [
        ([1, "10%", "30%", "100%"], 1000, [1, 100, 300, 1000]),
        ([1, "10%", "30%", "100%"], 5, [1, 2, 3, 5]),
        ([1, "10%", "30%", "100%"], 1, [1]),
        (["25%"], 10, [2]),
        (["1", 400], 10, [1, 10]),
    ],
)
def test_batches_say_how_many_hosts_are_tuned_after_each(batches: List[Any], hosts: int, ends: List[int]) -> None:
    assert batch_ends(batches, hosts) == ends


@pytest.mark.parametrize(
    ("batches", "words"),
    [
        (["50%", "10%", 1], "10% comes after 50%"),
        ([1, 30, 20, "100%"], "20 comes after 30"),
        ([5, "10%", 4], "4 comes after 5"),
    ],
)
def test_batches_in_the_wrong_order_are_refused(batches: List[Any], words: str) -> None:
    with pytest.raises(NearmetalError, match=rf"rollout\.batches must grow, .*: {words}$"):
        batch_ends(batches, 10)


@pytest.mark.parametrize("batches", [["ten"], [0], ["0%"], ["101%"], [-1], [True], [1.5], []])
def test_what_is_no_size_of_a_batch_is_said(batches: List[Any]) -> None:
    with pytest.raises(NearmetalError, match=r"rollout\.batches"):
        batch_ends(batches, 10)
