# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The triage of ENA's allowances, on texts in the form that `ethtool -S` prints."""

from __future__ import annotations

from typing import Any, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.ethtool import ALLOWANCES, CONNTRACK_AVAILABLE
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._forms import prometheus
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report import allowances
from prometheus_client.parser import text_string_to_metric_families

from tests.support.fleet import GOOD_CLOCK, result_with
from tests.support.report import reports

QUIET = """NIC statistics:
     tx_timeout: 0
     interface_up: 1
     bw_in_allowance_exceeded: 0
     bw_out_allowance_exceeded: 0
     pps_allowance_exceeded: 0
     conntrack_allowance_available: 450878
     conntrack_allowance_exceeded: 0
     linklocal_allowance_exceeded: 0
     queue_0_tx_cnt: 4329
     queue_0_rx_cnt: 5671
"""
BUSY = """NIC statistics:
     tx_timeout: 0
     interface_up: 1
     bw_in_allowance_exceeded: 12
     bw_out_allowance_exceeded: 0
     pps_allowance_exceeded: 98312
     conntrack_allowance_available: 1204
     conntrack_allowance_exceeded: 0
     linklocal_allowance_exceeded: 7
     queue_0_tx_cnt: 60004329
     queue_0_rx_cnt: 60005671
"""
# A driver before 2.2.10 has no such counters; one before 2.8.1 doesn't say what is available.
OLD_DRIVER = """NIC statistics:
     tx_timeout: 0
     queue_0_tx_cnt: 4329
"""


def sample(text: str, seconds: float, interface: str = "ens5") -> Dict[str, Any]:
    counters = {}
    for line in text.splitlines()[1:]:
        name, value = line.split(":")
        counters[name.strip()] = int(value)
    packets = sum(value for name, value in counters.items() if name.endswith(("_tx_cnt", "_rx_cnt")))
    return {"interface": interface, "seconds": seconds, "packets": packets, "counters": counters}


def test_each_limit_that_is_observed_is_explained() -> None:
    assert {*allowances.LIMITS, CONNTRACK_AVAILABLE} == set(ALLOWANCES)


def test_only_differences_count() -> None:
    (found,) = allowances.verdicts([sample(BUSY, 100.0), sample(BUSY, 400.0)])
    assert found["sentence"] == ""
    assert set(found["deltas"].values()) == {0}


def test_an_exceeded_allowance_is_a_limit_of_ec2() -> None:
    (found,) = allowances.verdicts([sample(QUIET, 1000.0), sample(BUSY, 1060.0)])
    assert found["deltas"] == {
        "bw_in_allowance_exceeded": 12,
        "bw_out_allowance_exceeded": 0,
        "pps_allowance_exceeded": 98312,
        "conntrack_allowance_exceeded": 0,
        "linklocal_allowance_exceeded": 7,
    }
    assert found["packets_per_second"] == 2_000_000
    assert found["conntrack_available"] == 1204
    for part in ("inbound bandwidth: 12 packets", "98,312 packets over it in 60 s", "can't help", "DNS", "500 ns"):
        assert part in found["sentence"]
    assert "outbound" not in found["sentence"]
    assert "tracked connections" not in found["sentence"]


def test_counters_that_were_reset_are_counted_from_zero() -> None:
    (found,) = allowances.verdicts([sample(BUSY, 0.0), sample(BUSY.replace("98312", "5"), 60.0)])
    assert found["deltas"]["pps_allowance_exceeded"] == 5
    assert found["deltas"]["bw_in_allowance_exceeded"] == 12


def test_the_last_two_samples_decide_in_whatever_order_they_come() -> None:
    (found,) = allowances.verdicts([sample(BUSY, 120.0), sample(QUIET, 0.0), sample(QUIET, 60.0)])
    assert found["deltas"]["pps_allowance_exceeded"] == 98312


def test_each_interface_is_judged_separately() -> None:
    samples = [sample(QUIET, 0.0), sample(QUIET, 0.0, "ens6"), sample(BUSY, 9.0, "ens6"), sample(QUIET, 9.0)]
    assert [bool(found["sentence"]) for found in allowances.verdicts(samples)] == [False, True]


@pytest.mark.parametrize("samples", [[], [sample(BUSY, 1.0)], [sample(BUSY, 1.0), sample(BUSY, 1.0, "ens6")]])
def test_one_sample_says_nothing(samples: Any) -> None:
    assert allowances.verdicts(samples) == []


def test_old_driver() -> None:
    (found,) = allowances.verdicts([sample(OLD_DRIVER, 0.0), sample(OLD_DRIVER, 60.0)])
    assert found["deltas"] == {}
    assert found["conntrack_available"] is None
    assert found["sentence"] == ""


@pytest.mark.parametrize(("before", "after"), [(0, None), (None, 5), (9, 5), ("0", "5"), (True, True)])
def test_without_the_packets_there_is_no_rate(before: Any, after: Any) -> None:
    first, second = {**sample(QUIET, 0.0), "packets": before}, {**sample(BUSY, 60.0), "packets": after}
    (found,) = allowances.verdicts([first, second])
    assert found["packets_per_second"] is None
    assert "ns for each" not in found["sentence"]


def test_a_baseline_brings_the_first_sample() -> None:
    earlier = reports.report(result_with(GOOD_CLOCK, allowances=[sample(QUIET, 1000.0)])).hosts
    later = reports.report(
        result_with(GOOD_CLOCK, allowances=[sample(BUSY, 1060.0)]), earlier=("2026-01-30T00:00:00Z", earlier)
    )
    assert [finding.status for finding in later.hosts[0].findings] == ["ok", "advice"]
    assert "EC2's limit" in later.hosts[0].findings[1].reason
    values = {
        sample.labels["allowance"]: sample.value
        for family in text_string_to_metric_families(prometheus.render(later))
        if family.name == "nearmetal_ena_allowance_exceeded_packets"
        for sample in family.samples
    }
    assert values["pps_allowance_exceeded"] == 98312


@pytest.mark.parametrize("today", [[], [sample(QUIET, 9000.0)], [sample(QUIET, 9000.0, "ens6")]])
def test_a_limit_of_the_baseline_is_not_reported_again(today: Any) -> None:
    found = reports.report(result_with(GOOD_CLOCK, allowances=[sample(QUIET, 1000.0), sample(BUSY, 1060.0)]))
    assert [finding.status for finding in found.hosts[0].findings] == ["ok", "advice"]
    later = reports.report(
        result_with(GOOD_CLOCK, allowances=today), fail_on=["advice"], earlier=("2026-01-30T00:00:00Z", found.hosts)
    )
    # The counters of ens5 were reset and count from 0.
    assert [finding.status for finding in later.hosts[0].findings] == ["ok"]
    assert later.gate is not None
    assert later.gate.hosts == ()


def facts(seconds: int, pps: int, **more: Any) -> Dict[str, Any]:
    sample = {"seconds": seconds, "allowances": {"ens5": {"pps_allowance_exceeded": pps}}, **more}
    return {"ansible_facts": {"nearmetal": {"network": {"sample": sample}}}}


def test_network_facts_that_looked_for_a_while() -> None:
    sampled = facts(10, 77, packets={"ens5": 20_000_000})
    (found,) = allowances.verdicts(allowances.read_samples(sampled, 5000.0))
    assert found["seconds"] == 10
    assert found["deltas"]["pps_allowance_exceeded"] == 77
    assert "At 2,000,000 packets/s the host has 500 ns for each packet." in found["sentence"]


def test_network_facts_of_two_runs() -> None:
    first, second = (allowances.read_samples(facts(0, pps), now) for pps, now in ((500, 1000.0), (900, 4600.0)))
    assert allowances.verdicts(first) == []
    (found,) = allowances.verdicts([*first, *second])
    assert (found["seconds"], found["deltas"]["pps_allowance_exceeded"]) == (3600, 400)


@pytest.mark.parametrize(
    "result",
    [None, [], {}, {"ansible_facts": 1}, {"ansible_facts": {"nearmetal": {"network": {"sample": {"allowances": 1}}}}}],
)
def test_results_without_a_sample(result: Any) -> None:
    assert allowances.read_samples(result, 1.0) == []
