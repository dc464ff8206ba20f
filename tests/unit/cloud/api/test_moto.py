# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules and the dynamic inventory against moto's server: an AWS that we didn't write, over HTTP.

What moto lacks (EnaSupport, CpuOptions, credit specifications, placement groups, faults) is tested on our
own fake endpoint in the other files.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Dict, Iterator, List

import boto3
import pytest
from moto.core.responses import EmptyResult
from moto.ec2.responses.elastic_network_interfaces import ElasticNetworkInterfaces
from moto.server import ThreadedMotoServer

from dev import ROOT
from dev.programs import amazon_aws

IMAGE = "ami-12c6146b"  # one of those that every account of moto's has


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """moto's server: its address."""
    running = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    running.start()
    yield "http://{}:{}".format(*running.get_host_and_port())
    running.stop()


@pytest.fixture
def moto(server: str, environment: pytest.MonkeyPatch) -> Any:
    """A fresh account, and boto3's client for EC2 in it."""
    environment.setenv("AWS_ENDPOINT_URL", server)
    client = boto3.client("ec2")
    with urllib.request.urlopen(f"{server}/moto-api/reset", b""):
        return client


def launch(client: Any, count: int = 1, kind: str = "m5.large", **tags: str) -> List[str]:
    """Running instances with tags."""
    given = [{"ResourceType": "instance", "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}]
    more: Dict[str, Any] = {"TagSpecifications": given} if tags else {}
    answer = client.run_instances(ImageId=IMAGE, MinCount=count, MaxCount=count, InstanceType=kind, **more)
    return [instance["InstanceId"] for instance in answer["Instances"]]


def test_instances_of_an_account(run: Any, moto: Any) -> None:
    cache = launch(moto, 2, "c4.large", workload="cache")
    launch(moto, 1, "m5.large")
    result = run("instance_info", filters={"tag:workload": "cache"})
    assert sorted(result["instances"]) == sorted(cache)
    facts = result["instances"][cache[0]]["facts"]
    assert (facts["host_class"], facts["state"], facts["workload"]) == ("xen_hvm", "running", "cache")
    assert facts["account"] == "123456789012"
    assert facts["interfaces"][0]["interface_id"].startswith("eni-")


def test_an_unknown_instance_is_named_and_the_others_complete(run: Any, moto: Any) -> None:
    (known,) = launch(moto)
    result = run("instance_info", instance_ids=[known, "i-00000000000000001"])
    assert list(result["failed_instances"]) == ["i-00000000000000001"]


def test_stopped_instances_are_found_by_their_ids(run: Any, moto: Any) -> None:
    (instance,) = launch(moto)
    moto.stop_instances(InstanceIds=[instance])
    assert run("instance_info", instance_ids=[instance])["instances"][instance]["facts"]["state"] == "stopped"


def test_types_of_the_api_are_those_of_the_table(run: Any, moto: Any) -> None:
    names = ["c6in.32xlarge", "i4i.metal", "t2.micro", "c3.8xlarge", "u7i-12tb.224xlarge"]
    from_api = run("instance_type_info", instance_types=names, source="api")["instance_types"]
    table = run("instance_type_info", instance_types=names)["instance_types"]
    for name in names:
        assert {**from_api[name], "source": ""} == {**table[name], "source": ""}


def test_volumes_and_their_balance(run: Any, moto: Any) -> None:
    (instance,) = launch(moto)
    volume = moto.create_volume(AvailabilityZone="eu-west-1a", Size=100, VolumeType="gp2")["VolumeId"]
    moto.attach_volume(VolumeId=volume, InstanceId=instance, Device="/dev/sdf")
    metric = {"MetricName": "BurstBalance", "Dimensions": [{"Name": "VolumeId", "Value": volume}], "Value": 11.0}
    stamp = datetime.now(timezone.utc) - timedelta(minutes=10)
    boto3.client("cloudwatch").put_metric_data(Namespace="AWS/EBS", MetricData=[{**metric, "Timestamp": stamp}])
    result = run("ebs", instance_ids=[instance], metrics=True)
    shown = {shown_volume["volume_id"]: shown_volume for shown_volume in result["instances"][instance]["volumes"]}
    assert (shown[volume]["iops"], shown[volume]["device"], shown[volume]["burst_balance"]) == (300, "/dev/sdf", 11)
    assert {
        (finding["where"], finding["status"]) for finding in result["findings"] if finding["knob"] == "burst_balance"
    } == {(volume, "advice")}


def test_credits_as_cloudwatch_sums_them(run: Any, moto: Any) -> None:
    (instance,) = launch(moto, kind="t3.micro")
    dimension = [{"Name": "InstanceId", "Value": instance}]
    now = datetime.now(timezone.utc)
    data = []
    for minutes in (14, 9):
        stamp = now - timedelta(minutes=minutes)
        data += [
            {"MetricName": "CPUCreditBalance", "Dimensions": dimension, "Timestamp": stamp, "Value": 60.0},
            {"MetricName": "CPUCreditUsage", "Dimensions": dimension, "Timestamp": stamp, "Value": 6.0},
        ]
    boto3.client("cloudwatch").put_metric_data(Namespace="AWS/EC2", MetricData=data)
    shown = run("cpu_credits", instance_ids=[instance], metrics=True)["instances"][instance]["credits"]
    assert (shown["specification"], shown["balance"], shown["used_per_hour"]) == ("standard", 60, 72)
    assert shown["hours_left"] == 1


def test_an_alarm_on_the_credits_is_set_seen_and_taken_back(run: Any, moto: Any) -> None:
    first, second = launch(moto, 2, "t3.micro")
    boto3.client("cloudwatch").put_metric_alarm(
        AlarmName="theirs",
        Namespace="AWS/EC2",
        MetricName="CPUCreditBalance",
        Statistic="Average",
        Period=300,
        EvaluationPeriods=1,
        Threshold=5.0,
        ComparisonOperator="LessThanThreshold",
    )
    wanted = {"instance_ids": [first, second], "alarm_percent": 25, "allow_cost": True}
    assert run("cpu_credits", **wanted)["changed"]
    found = {alarm["AlarmName"]: alarm for alarm in boto3.client("cloudwatch").describe_alarms()["MetricAlarms"]}
    assert found[f"nearmetal-cpu-credits-{first}"]["Threshold"] == 72
    assert not run("cpu_credits", **wanted)["changed"]
    assert run("cpu_credits", state="restored", **wanted)["changed"]
    left = boto3.client("cloudwatch").describe_alarms()["MetricAlarms"]
    assert [alarm["AlarmName"] for alarm in left] == ["theirs"]


def test_interfaces_are_attached_seen_and_taken_back(run: Any, moto: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def protect(self: Any) -> Any:
        """moto takes no notice of this attribute: it is set here."""
        interface = self.ec2_backend.get_network_interface(self._get_param("NetworkInterfaceId"))
        interface.delete_on_termination = str(self._get_param("Attachment.DeleteOnTermination")).lower() == "true"
        return EmptyResult()

    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    monkeypatch.setattr(ElasticNetworkInterfaces, "modify_network_interface_attribute", protect)
    (instance,) = launch(moto, 1, "m5.4xlarge")
    zone = moto.describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"][0]["Placement"]
    in_zone = [{"Name": "availability-zone", "Values": [zone["AvailabilityZone"]]}]
    subnet = moto.describe_subnets(Filters=in_zone)["Subnets"][0]
    wanted = {"instance_ids": [instance], "count": 3, "allow_attach": True, "tags": {"owner": "team"}}
    done = run("network_interfaces", subnet_ids=[subnet["SubnetId"]], **wanted)
    assert not done.get("failed"), done["msg"]
    tagged = [{"Name": "tag:nearmetal:attached-to", "Values": [instance]}]
    made = moto.describe_network_interfaces(Filters=tagged)["NetworkInterfaces"]
    assert [interface["Attachment"]["DeviceIndex"] for interface in made] == [1, 2]
    assert {interface["SubnetId"] for interface in made} == {subnet["SubnetId"]}
    assert all({"Key": "owner", "Value": "team"} in interface["TagSet"] for interface in made)
    assert not run("network_interfaces", **wanted)["changed"]
    assert run("network_interfaces", instance_ids=[instance], state="restored")["changed"]
    assert moto.describe_network_interfaces(Filters=tagged)["NetworkInterfaces"] == []
    left = moto.describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"][0]["NetworkInterfaces"]
    assert [interface["Attachment"]["DeviceIndex"] for interface in left] == [0]


def test_sizing_by_what_cloudwatch_measured(run: Any, moto: Any) -> None:
    (instance,) = launch(moto, 1, "c5.4xlarge")
    dimension = [{"Name": "InstanceId", "Value": instance}]
    stamp = datetime.now(timezone.utc) - timedelta(minutes=30)
    values = {"CPUUtilization": 10.0, "NetworkIn": 3e9, "NetworkOut": 3.75e9}
    data = [
        {"MetricName": name, "Dimensions": dimension, "Timestamp": stamp, "Value": value}
        for name, value in values.items()
    ]
    boto3.client("cloudwatch").put_metric_data(Namespace="AWS/EC2", MetricData=data)
    sizing = run("sizing", instance_ids=[instance], metrics=True)["instances"][instance]["sizing"]
    # 10 % of 16 vCPUs, and 3.75 GB in 300 s.
    assert "= 1.6 vCPUs" in sizing["arithmetic"][0]
    assert "= 0.1 Gbit/s" in sizing["arithmetic"][0]
    assert sizing["today"]["holds"]


def test_an_assumed_role(run: Any, moto: Any) -> None:
    launch(moto)
    role = "arn:aws:iam::123456789012:role/audit"
    result = run("instance_info", filters={}, assume_roles={"production": role})
    assert result["errors"] == []


def test_the_modules_that_only_read_run_over_moto(run: Any, moto: Any) -> None:
    ids = launch(moto, 3, "m5.24xlarge")
    for module in ("network_interfaces", "enhanced_networking"):
        result = run(module, instance_ids=ids)
        assert sorted(result["instances"]) == sorted(ids), module
        assert result["failed_instances"] == {}, module


def inventory(server: str, *arguments: str) -> Any:
    """The output of ansible-inventory for the documented example with the real plugin."""
    paths = [ROOT / ".ansible" / "collections", amazon_aws.HOME]
    places = os.pathsep.join(map(str, paths))
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": places, "AWS_ENDPOINT_URL": server}
    done = subprocess.run(
        [str(Path(sys.executable).with_name("ansible-inventory")), *arguments],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_documented_inventory_groups_the_fleet(moto: Any, server: str) -> None:
    (cache,) = launch(moto, 1, "c7gn.16xlarge", workload="cache")
    (web,) = launch(moto, 1, "c4.large", workload="web")
    (bare,) = launch(moto, 1, "i4i.metal")
    (both,) = launch(moto, 1, "m7g.large", workload="web, cache")
    found = inventory(server, "-i", "docs/examples/fleet.aws_ec2.yml", "--list")
    members = {group: content["hosts"] for group, content in found.items() if "hosts" in content}
    assert sorted(members["workload_cache"]) == sorted([cache, both])
    assert sorted(members["workload_web"]) == sorted([web, both])
    assert sorted(group for group in members if group.startswith("workload")) == ["workload_cache", "workload_web"]
    assert members["family_c7gn"] == [cache]
    assert members["class_xen_hvm"] == [web]
    assert sorted(members["class_nitro"]) == sorted([cache, both])
    assert members["class_metal"] == [bare]
    assert sorted(members["arch_arm64"]) == sorted([cache, both])
    assert sorted(members["arch_x86_64"]) == sorted([web, bare])
    assert found["_meta"]["hostvars"][both]["tune_workload"]["__ansible_unsafe"] == "web, cache"
    variables = found["_meta"]["hostvars"][cache]
    # ansible-inventory marks what came from outside.
    plain = {name: variables[name]["__ansible_unsafe"] for name in ("cloud_region", "tune_workload", "instance_id")}
    assert plain == {"cloud_region": "eu-west-1", "tune_workload": "cache", "instance_id": cache}
