# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far a rollout comes in simulated fleets, and what it says when it can't tell.

docs/rollout.md has the figures of 2,000 fleets of 1,000 hosts; here are a few smaller ones.
"""

from __future__ import annotations

from ansible_collections.nearmetal.ec2.plugins.plugin_utils._rollout.decision import (
    BACK,
    GO_ON,
    HOLD,
    Judgment,
    Settings,
    figures,
    judge,
    judgment_with,
)
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._rollout.effect import Watch

from tests.support.prove.rollouts import WORLDS, roll_out

ONE = Settings((("rate", "larger", 5.0),), 1, 2, 3, 1)


def test_a_harmful_change_stops_at_its_first_larger_batch_and_a_harmless_one_reaches_all() -> None:
    batches = [1, "25%", "100%"]
    harmful = [roll_out(1, 120, world, 0.05, batches) for world in WORLDS]
    assert sum(end.tuned == 30 and end.decision in (BACK, HOLD) for end in harmful) >= len(harmful) - 1
    harmless = [roll_out(1, 120, world, 0.0, batches) for world in WORLDS]
    assert sum(end.decision == GO_ON for end in harmless) >= len(harmless) - 2


def test_great_harm_is_found_before_the_watch_is_over() -> None:
    assert roll_out(1, 160, "quiet", 0.3, ["25%", "100%"]).looks < 10


def watch(tuned: float, looks: int, hosts: int = 20) -> Watch:
    """Half of the hosts are tuned and have this value, which differs a little from host to host."""
    before = {"rate": [100.0 + host % 3 for host in range(hosts)]}
    after = {"rate": [(tuned if host < hosts // 2 else 100.0) + host % 4 for host in range(hosts)]}
    return Watch(hosts // 2, [0] * hosts, [before] * 2, [after] * looks)


def test_it_is_watched_to_the_end_before_it_goes_on() -> None:
    assert judge(ONE, watch(100, 1)).decision == ""
    assert judge(ONE, watch(100, 2)).decision == GO_ON
    assert judge(ONE, watch(80, 2)).decision == BACK


def test_a_gain_goes_on() -> None:
    assert judge(ONE, watch(130, 2)).decision == GO_ON
    (figure,) = figures(ONE, watch(130, 2))
    assert figure["low"] > 20


def test_a_loss_that_isnt_excluded_is_watched_longer_and_then_held_with_the_reason() -> None:
    noisy = watch(100, 2)
    values = [100.0 * (0.7 + host % 10 * 0.06) for host in range(20)]
    noisy = noisy._replace(after=[{"rate": values}] * 2)
    assert judge(ONE, noisy).decision == ""
    last = judge(ONE, noisy._replace(after=[{"rate": values}] * 3))
    assert (last.decision, last.reasons) == (HOLD, ("a loss of 5 % in rate isn't excluded",))
    assert judge(ONE._replace(most_looks=9), noisy._replace(after=[{"rate": values}] * 3), over=True) == last
    assert judge(ONE._replace(unclear=GO_ON), noisy._replace(after=[{"rate": values}] * 3)).decision == GO_ON


def test_tuned_hosts_that_no_longer_report_are_harm() -> None:
    silent = watch(100, 2)
    row = [None if host < 8 else 100.0 for host in range(20)]
    judged = judge(ONE, silent._replace(after=[{"rate": row}] * 2))
    assert judged.decision == BACK
    assert judged.reasons == ("8 tuned hosts of 10 no longer have rate, and hardly a host that waits",)


def test_a_source_that_knows_few_hosts_decides_nothing() -> None:
    few = watch(100, 3)
    row = [100.0 if host % 2 else None for host in range(20)]
    judged = judge(ONE, few._replace(before=[{"rate": row}], after=[{"rate": row}] * 3))
    assert judged.decision == HOLD
    assert judged.reasons == ("rate is known of 5 of 10 tuned and 5 of 10 other hosts",)


def test_a_thousand_hosts_have_more_draws_than_a_float_can_count() -> None:
    many = watch(100, 2, 1100)
    assert judge(ONE, many).decision == GO_ON
    assert judge(ONE, many._replace(strata=[host % 3 for host in range(1100)])).decision == GO_ON


def test_the_last_batch_and_single_hosts_are_judged_by_guards_alone() -> None:
    whole = Watch(20, [0] * 20, [], [])
    assert judge(ONE, whole).reasons == ("no host waits any more to compare with: guards alone",)
    assert judge(ONE, watch(100, 2, 2)).reasons == ("guards alone: too few hosts",)
    assert judge(ONE._replace(metrics=()), watch(100, 0)).decision == GO_ON


def test_a_guard_or_a_failed_host_takes_back_what_the_metrics_would_keep() -> None:
    good = Judgment(GO_ON, ("no metric lost its margin",))
    assert judgment_with(good, {}, {}).decision == GO_ON
    assert judgment_with(good, {"db-1": ["oops: BUG"]}, {}).reasons == ("db-1: oops: BUG",)
    worse = Judgment(BACK, ("rate became worse",))
    assert judgment_with(worse, {"db-1": ["oops: BUG"]}, {}).reasons == ("db-1: oops: BUG", "rate became worse")
    assert judgment_with(good, {}, {"db-2": "no room"}).decision == BACK
