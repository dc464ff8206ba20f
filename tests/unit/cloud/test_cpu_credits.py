# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""cpu_credits, on our own fake endpoint: moto always says standard and can't modify.

The rules are held to AWS's published figures.
"""

from __future__ import annotations

from typing import Any, Dict, List

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.nearmetal.ec2.plugins.filter.simulate_credits import FilterModule
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.credit_rules import RULES, hours_left, simulate
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.types.table import offline_types
from hypothesis import given
from hypothesis import strategies as st

from tests.support.aws.fake_aws import FakeAws

# AWS's page "CPU credits and baseline utilization": credits per hour, cap, vCPUs, baseline per vCPU in per cent.
AWS_TABLE = {
    "t2.nano": (3, 72, 1, 5),
    "t2.micro": (6, 144, 1, 10),
    "t2.small": (12, 288, 1, 20),
    "t2.medium": (24, 576, 2, 20),
    "t2.large": (36, 864, 2, 30),
    "t2.xlarge": (54, 1296, 4, 22.5),
    "t2.2xlarge": (81.6, 1958.4, 8, 17),
    "t3.nano": (6, 144, 2, 5),
    "t3a.micro": (12, 288, 2, 10),
    "t4g.small": (24, 576, 2, 20),
    "t3.medium": (24, 576, 2, 20),
    "t3a.large": (36, 864, 2, 30),
    "t4g.xlarge": (96, 2304, 4, 40),
    "t3.2xlarge": (192, 4608, 8, 40),
}


@pytest.mark.parametrize("name", AWS_TABLE)
def test_the_rules_are_those_of_aws(name: str) -> None:
    rules = RULES[name]
    found = (rules.earn_per_hour, rules.cap, rules.vcpus, rules.baseline_percent)
    assert found == pytest.approx(AWS_TABLE[name])


def test_every_burstable_type_has_rules_that_agree_with_its_vcpus() -> None:
    burstable = {name: facts.vcpus for name, facts in offline_types().items() if facts.burstable}
    assert burstable == {name: rules.vcpus for name, rules in RULES.items()}


def test_the_baselines_of_the_talk_are_totals() -> None:
    """AWS's talk of 2017 prints 40, 60, 90 and 135 % for medium to 2xlarge: the sum over the vCPUs."""
    totals = {"t2.medium": 40, "t2.large": 60, "t2.xlarge": 90, "t2.2xlarge": 136}
    assert {name: round(RULES[name].baseline_percent * RULES[name].vcpus) for name in totals} == totals


@pytest.mark.parametrize("name", RULES)
def test_at_its_baseline_an_instance_neither_gains_nor_loses(name: str) -> None:
    result = simulate(RULES[name], [(600, RULES[name].baseline_percent)], False, balance=10)
    assert result.balance == pytest.approx(10)
    assert result.limited_minutes == 0
    assert hours_left(RULES[name], False, 10, 0, RULES[name].earn_per_hour) is None


def test_earned_credits_do_not_expire_after_a_day() -> None:
    """In 2017 they did; today the balance only has a cap of 24 hours of earnings."""
    idle = simulate(RULES["t3.micro"], [(48 * 60, 0)], False)
    assert idle.balance == 288
    assert idle.balances[: 24 * 12][-1] == 288


def test_standard_is_slowed_down_and_unlimited_pays() -> None:
    full = [(60.0, 100.0)]
    standard = simulate(RULES["t3.micro"], full, False, balance=54)
    # 120 credits an hour against 12 earned: 54 last for half an hour.
    assert (standard.balance, standard.limited_minutes, standard.charged) == (0, 30, 0)
    unlimited = simulate(RULES["t3.micro"], full, True, balance=54)
    assert (unlimited.balance, unlimited.surplus, unlimited.charged) == (0, 54, 0)
    long = simulate(RULES["t3.micro"], [(300, 100)], True)
    # 5 × 108 beyond what it earns: 288 on credit, the rest is charged.
    assert (long.surplus, long.charged, long.limited_minutes) == (288, 252, 0)


def test_surplus_is_paid_back_before_anything_is_saved() -> None:
    result = simulate(RULES["t3.micro"], [(120, 0)], True, surplus=30)
    assert (result.balance, result.surplus) == (0, 6)


@given(
    st.sampled_from(sorted(RULES)),
    st.lists(st.tuples(st.floats(0, 240), st.floats(0, 100)), max_size=20),
    st.booleans(),
)
def test_credits_are_never_lost_nor_made(name: str, load: Any, unlimited: bool) -> None:
    rules = RULES[name]
    result = simulate(rules, load, unlimited)
    earned = sum(minutes for minutes, _percent in load) * rules.earn_per_hour / 60
    spent = sum(minutes * percent / 100 for minutes, percent in load) * rules.vcpus
    assert 0 <= result.balance <= rules.cap
    assert 0 <= result.surplus <= rules.cap
    # The cap drops credits and the limit refuses CPU, so the balance is at least the computed one.
    books = earned - spent
    assert result.balance - result.surplus - result.charged >= books - 0.01
    assert not (unlimited and result.limited_minutes)
    assert unlimited or not (result.surplus or result.charged)


def test_the_filter() -> None:
    run = FilterModule().filters()["simulate_credits"]
    load = [{"minutes": 120, "percent": 50}, {"minutes": 600, "percent": 5}]
    result = run(load, "t3.micro", balance=60)
    assert result["limited_minutes"] == 45
    assert result["balance"] == pytest.approx(60)
    assert run([100, 100], "t3.micro")["limited_minutes"] == 10


@pytest.mark.parametrize(
    ("load", "options", "message"),
    [
        ([1], {"instance_type": "m5.large"}, "no CPU credits"),
        ([1], {"instance_type": "t3.micro", "specification": "always"}, "standard or unlimited"),
        ([101], {"instance_type": "t3.micro"}, "from 0 to 100"),
        (["much"], {"instance_type": "t3.micro"}, "neither a percentage nor a map"),
        ([{"percent": 1}], {"instance_type": "t3.micro"}, "neither a percentage nor a map"),
        ([{"percent": 1, "minutes": 10**9}], {"instance_type": "t3.micro"}, "more than a year"),
    ],
)
def test_the_filter_names_what_is_wrong(load: Any, options: Dict[str, Any], message: str) -> None:
    with pytest.raises(AnsibleFilterError, match=message):
        FilterModule().filters()["simulate_credits"](load, **options)


def burstable(aws: FakeAws, number: int = 1, kind: str = "t3.micro", mode: str = "standard", **more: Any) -> str:
    """One more burstable instance."""
    instance = aws.add(number, kind, **more)
    aws.credits[instance] = mode
    return instance


def status_of(result: Dict[str, Any], instance_id: str) -> Dict[str, Any]:
    """knob → status of an instance's findings."""
    return {finding["knob"]: finding["status"] for finding in result["instances"][instance_id]["findings"]}


def fill(
    aws: FakeAws, instance_id: str, balance: float, used: List[float], surplus: float = 0, charged: float = 0
) -> None:
    """Set CloudWatch's values of an instance."""
    values = {"CPUCreditBalance": [balance], "CPUCreditUsage": used}
    values.update({"CPUSurplusCreditBalance": [surplus], "CPUSurplusCreditsCharged": [charged]})
    aws.metrics.update({(name, instance_id): series for name, series in values.items()})


def test_an_instance_that_runs_out_of_credits_is_reported_with_its_hours(run: Any, aws: FakeAws) -> None:
    draining, calm, costly = burstable(aws, 1), burstable(aws, 2), burstable(aws, 3, mode="unlimited")
    fill(aws, draining, 96, [5.0] * 12)  # 60 an hour against 12 earned
    fill(aws, calm, 20, [0.5] * 12)
    fill(aws, costly, 0, [5.0] * 12, surplus=240, charged=3)
    result = run("cpu_credits", instance_ids=[draining, calm, costly], metrics=True)
    seen = {instance_id: found["credits"] for instance_id, found in result["instances"].items()}
    assert seen[draining]["hours_left"] == 2
    assert seen[calm]["hours_left"] is None
    assert seen[costly]["hours_left"] == 1
    assert status_of(result, draining) == {"specification": "ok", "balance": "advice"}
    assert status_of(result, calm) == {"specification": "ok", "balance": "ok"}
    assert status_of(result, costly) == {"specification": "ok", "balance": "advice", "charged": "advice"}
    assert aws.calls["GetMetricData"] == 1


def test_cloudwatch_is_not_asked_unless_wanted(run: Any, aws: FakeAws) -> None:
    instance = burstable(aws)
    result = run("cpu_credits", instance_ids=[instance])
    assert aws.calls["GetMetricData"] == 0
    assert status_of(result, instance) == {"specification": "ok", "balance": "unknown"}


def test_types_without_credits_are_not_queried_for_them(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1, "c7i-flex.large")
    assert status_of(run("cpu_credits", instance_ids=[instance], metrics=True), instance) == {
        "specification": "not_applicable"
    }
    assert not aws.calls["DescribeInstanceCreditSpecifications"] + aws.calls["GetMetricData"]


def test_the_mode_is_changed_once_with_the_opt_in(run: Any, aws: FakeAws) -> None:
    ids = [burstable(aws, number) for number in (1, 2)]
    options = {"instance_ids": ids, "specification": "unlimited", "allow_cost": True}
    checked = run("cpu_credits", check=True, **options)
    assert aws.calls["ModifyInstanceCreditSpecification"] == 0
    done = run("cpu_credits", **options)
    assert done["diff"] == checked["diff"]
    assert done["diff"]["after"] == {instance_id: {"credit_specification": "unlimited"} for instance_id in ids}
    assert aws.calls["ModifyInstanceCreditSpecification"] == 1
    assert set(aws.credits.values()) == {"unlimited"}
    assert status_of(done, ids[0])["specification"] == "changed"
    assert not run("cpu_credits", **options)["changed"]


@pytest.mark.parametrize(
    ("more", "options", "reason"),
    [
        ({}, {"allow_cost": False}, "allow_cost: true"),
        ({"Placement": {"Tenancy": "host"}}, {}, "Dedicated Host"),
    ],
)
def test_a_change_that_costs_or_is_impossible_is_refused(
    run: Any, aws: FakeAws, more: Any, options: Any, reason: str
) -> None:
    instance = burstable(aws, **more)
    arguments = {"instance_ids": [instance], "specification": "unlimited", "allow_cost": True, **options}
    result = run("cpu_credits", **arguments)
    assert not result["changed"]
    assert reason in result["findings"][0]["reason"]
    assert run("cpu_credits", strict=True, **arguments)["failed"]
    assert aws.credits[instance] == "standard"


def test_a_scheduled_event_refuses_the_change(run: Any, aws: FakeAws) -> None:
    instance = burstable(aws)
    aws.statuses[instance] = {"Events": [{"Code": "instance-retirement", "Description": "soon"}]}
    result = run("cpu_credits", instance_ids=[instance], specification="unlimited", allow_cost=True)
    assert status_of(result, instance)["specification"] == "refused"


@pytest.mark.parametrize("operation", ["DescribeInstanceStatus", "DescribeSpotInstanceRequests"])
def test_without_scheduled_events_from_aws_the_mode_stays(run: Any, aws: FakeAws, operation: str) -> None:
    instance = burstable(aws, InstanceLifecycle="spot")
    aws.fault(operation, "UnauthorizedOperation")
    result = run("cpu_credits", instance_ids=[instance], specification="unlimited", allow_cost=True)
    assert status_of(result, instance)["specification"] == "refused"
    assert any(f"the permission ec2:{operation}: " in finding["reason"] for finding in result["findings"])
    assert aws.credits[instance] == "standard"
    looked = run("cpu_credits", instance_ids=[instance])
    assert status_of(looked, instance)["specification"] == "ok"


def test_a_failing_instance_is_named_and_the_others_are_changed(run: Any, aws: FakeAws) -> None:
    terminated, present = burstable(aws, 1), burstable(aws, 2)
    aws.forget_after("DescribeInstanceCreditSpecifications", terminated)
    result = run("cpu_credits", instance_ids=[terminated, present], specification="unlimited", allow_cost=True)
    assert result["failed"]
    assert f"{terminated}: InvalidInstanceID.NotFound" in result["msg"]
    assert status_of(result, present)["specification"] == "changed"
    assert aws.credits[present] == "unlimited"


@pytest.mark.parametrize("kind", ["UnauthorizedOperation", "RequestLimitExceeded"])
def test_a_change_that_aws_made_is_no_failure_whatever_it_responded(run: Any, aws: FakeAws, kind: str) -> None:
    instance = burstable(aws)
    aws.fault("ModifyInstanceCreditSpecification", kind, applied=True)
    result = run("cpu_credits", instance_ids=[instance], specification="unlimited", allow_cost=True)
    assert status_of(result, instance)["specification"] == "changed"
    assert not result.get("failed")


def test_surplus_is_owed_at_once(run: Any, aws: FakeAws) -> None:
    instance = burstable(aws, mode="unlimited")
    fill(aws, instance, 0, [1.0], surplus=33)
    options = {"specification": "standard", "allow_cost": True, "metrics": True}
    result = run("cpu_credits", check=True, instance_ids=[instance], **options)
    assert "surplus of 33 credits is charged at once" in result["actions"][0]["reason"]


def test_a_thousand_instances_in_eight_calls_of_cloudwatch(run: Any, aws: FakeAws) -> None:
    ids = [burstable(aws, number) for number in range(1, 1001)]
    run("cpu_credits", instance_ids=ids, metrics=True)
    assert aws.calls == {
        "DescribeInstances": 5,
        "DescribeInstanceTypes": 1,
        "DescribeInstanceCreditSpecifications": 1,
        "GetMetricData": 8,
    }
