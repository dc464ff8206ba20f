# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The figures of several clients as those of one load: what one client with all of their answers would have said."""

from __future__ import annotations

import random
from typing import Any, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.tools import histogram
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.tools.registry import of_client
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.metrics import Metric

CLIENTS = ("client-1", "client-2")
TOGETHER = [(100.0, 110.0), (100.2, 110.2)]


def counts(answers: List[float]) -> Any:
    return [[us, 1] for us in answers]


def of(answers: List[float], rate: float) -> List[Metric]:
    return [Metric("requests", rate, "1/s"), histogram.times("", histogram.histogram_of(counts(answers)))["p99"]]


def test_the_late_answers_of_all_clients_are_those_of_all_answers_and_no_mean_of_percentiles() -> None:
    generator = random.Random(7)
    quick = [round(generator.uniform(100, 200), 1) for _answer in range(9000)]
    slow = [round(generator.uniform(9000, 10000), 1) for _answer in range(1000)]
    total, merged = histogram.added(
        CLIENTS, [of(quick, 900.0), of(slow, 100.0)], [{"": counts(quick)}, {"": counts(slow)}], TOGETHER
    )
    ordered = sorted(quick + slow)
    assert {metric.name: metric.value for metric in total} == {"requests": 1000.0, "p99": ordered[9899] / 1000}
    beside = histogram.details(merged, total)
    assert set(beside) == {"mean_ms", "p50_ms", "p99.9_ms"}
    assert beside["mean_ms"] == pytest.approx(sum(ordered) / 10000 / 1000, abs=1e-4)
    assert beside["p50_ms"] == pytest.approx(ordered[4999] / 1000, abs=1e-4)
    assert beside["p99.9_ms"] == pytest.approx(ordered[9989] / 1000, abs=1e-4)


def test_of_figures_without_a_histogram_the_worst_client_s_counts() -> None:
    def figures(rate: float, p99: float, hits: float) -> List[Metric]:
        return [Metric("get", rate, "1/s"), Metric("get_p99", p99, "ms", "smaller"), Metric("hits", hits, "%")]

    total, merged = histogram.added(CLIENTS, [figures(10.0, 3.0, 99.0), figures(20.0, 7.0, 98.0)], [{}, None], TOGETHER)
    assert ([metric.value for metric in total], merged) == ([30.0, 7.0, 98.0], {})


@pytest.mark.parametrize(
    ("second", "bins", "error"),
    [
        (
            [Metric("requests", 1.0, "1/min")],
            {},
            "client-2 has other figures than client-1: requests is in 1/min (larger",
        ),
        ([Metric("requests", 1.0, "1/s")], {"": [[1, -1]]}, "the clients' figures can't be added: an answer's time "),
        ([Metric("requests", 1.0, "1/s")], {"": [[True, 1]]}, "the clients' figures can't be added: an answer's time "),
        (
            [Metric("requests", 1.0, "1/s")],
            {"": "no"},
            "the clients' figures can't be added: the answers' times aren't",
        ),
        ([Metric("requests", 1.0, "1/s")], [7], "the clients' figures can't be added: "),
    ],
)
def test_figures_that_can_t_be_added_are_named(second: List[Metric], bins: Any, error: str) -> None:
    with pytest.raises(NearmetalError) as raised:
        histogram.added(CLIENTS, [[Metric("requests", 1.0, "1/s")], second], [{}, bins], TOGETHER)
    assert str(raised.value).startswith(error)


@pytest.mark.parametrize(
    ("spans", "error"),
    [
        ([(100.0, 110.0), (101.9, 111.9)], ""),
        ([(100.0, 110.0), (102.1, 112.1)], "the loads of 2 clients ran together for 7.9 of 10.0 s, so their figures "),
        ([(100.0, 110.0), (111.0, 121.0)], "the loads of 2 clients ran together for 0.0 of 10.0 s, so their figures "),
        ([(100.0, 110.0), (103.0, 106.0)], "the loads of 2 clients ran together for 3.0 of 10.0 s, so their figures "),
        ([(100.0, 110.0), None], "when the clients' loads ran isn't known"),
        ([(100.0, 110.0), (float("nan"), 1.0)], "the loads of 2 clients "),
    ],
)
def test_loads_that_did_not_run_together_are_not_added(spans: List[Any], error: str) -> None:
    rate, said = [Metric("requests", 1.0, "1/s")], ""
    try:
        assert histogram.added(CLIENTS, [rate, rate], [{}, {}], spans)[0][0].value == 2.0
    except NearmetalError as raised:
        said = str(raised)
    assert said.startswith(error)
    assert bool(said) == bool(error)
    assert "began last" in said or "together for" not in said


def test_each_client_of_a_server_that_takes_one_has_a_port_of_its_own() -> None:
    network = 'nearmetal benchmark network {"part": "client", "port": 15201, "server": "10.0.0.12"}'
    assert '"port": 15203' in of_client(network, 2)
    assert '"port": 18080' in of_client('nearmetal benchmark web {"part": "client", "server": "10.0.0.12"}', 2)
    assert of_client("/opt/bench --server redis-1", 2) == "/opt/bench --server redis-1"
