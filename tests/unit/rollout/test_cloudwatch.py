# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The figures of a fleet from CloudWatch, on our own fake endpoint."""

from __future__ import annotations

from typing import Any, Dict, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.options import validate
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._rollout import cloudwatch
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._rollout.metrics import Place

from tests.support.aws.fake_aws import FakeAws

METRICS = {
    "cpu": {"namespace": "AWS/EC2", "metric": "CPUUtilization", "dimensions": {"InstanceId": "{instance_id}"}},
    "jobs": {"namespace": "Ours", "metric": "Jobs", "dimensions": {"Host": "{host}"}, "statistic": "Sum"},
}


@pytest.fixture(autouse=True)
def fresh() -> None:
    """Sessions of this test alone."""
    cloudwatch._targets.cache_clear()


def ask(places: List[Place], **options: Any) -> Dict[str, Any]:
    """The values of three minutes after 100 seconds."""
    server = {**validate("rollout.cloudwatch", cloudwatch.CLOUDWATCH, options), "seconds": 180}
    wanted = {name: validate("metric", cloudwatch.METRIC, metric) for name, metric in METRICS.items()}
    return cloudwatch.ask(server, wanted, places, 100.0)


def test_each_host_has_the_mean_of_its_whole_minutes(aws: FakeAws) -> None:
    aws.metrics = {("CPUUtilization", "i-1"): [10, 30], ("Jobs", "a"): [4], ("Jobs", "b"): [0]}
    places = [Place("a", "10.0.0.1", "i-1"), Place("b", "10.0.0.2", "i-2"), Place("c", "10.0.0.3")]
    assert ask(places) == {"cpu": {"a": 20.0}, "jobs": {"a": 4.0, "b": 0.0}}
    ((_operation, asked),) = aws.requests
    assert [asked[name].timestamp() for name in ("StartTime", "EndTime")] == [120, 300]
    stats = [query["MetricStat"] for query in asked["MetricDataQueries"]]
    assert [(stat["Stat"], stat["Period"]) for stat in stats] == [("Average", 60)] * 2 + [("Sum", 60)] * 3


def test_a_thousand_hosts_with_two_metrics_are_four_calls_and_their_pages_are_read(aws: FakeAws) -> None:
    aws.metrics = {("Jobs", f"h{number}"): [number] for number in range(1000)}
    places = [Place(f"h{number}", "", f"i-{number}") for number in range(1000)]
    assert ask(places)["jobs"]["h999"] == 999
    assert aws.calls == {"GetMetricData": 4}
    aws.page = 200
    assert ask(places)["jobs"]["h999"] == 999
    assert aws.calls == {"GetMetricData": 4 + 4 * 3}


def test_a_host_is_asked_for_in_one_region_after_the_other(aws: FakeAws) -> None:
    aws.metrics = {("Jobs", "a"): [1]}
    ask([Place("a", ""), Place("b", "")], regions=["eu-west-1", "us-east-1"])
    asked = [
        [query["MetricStat"]["Metric"]["Dimensions"][0]["Value"] for query in request["MetricDataQueries"]]
        for _operation, request in aws.requests
    ]
    assert asked == [["a", "b"], ["b"]]


def test_throttling_is_waited_for_and_what_is_refused_is_said(aws: FakeAws) -> None:
    aws.metrics = {("Jobs", "a"): [1]}
    aws.fault("GetMetricData", "Throttling", times=1)
    assert ask([Place("a", "")])["jobs"] == {"a": 1.0}
    aws.fault("GetMetricData", "AccessDenied")
    with pytest.raises(NearmetalError, match="GetMetricData: AccessDenied: the credentials lack the permission"):
        ask([Place("a", "")])
