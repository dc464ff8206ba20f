# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The policies in docs/iam allow exactly the calls of the modules, as our own fake endpoint sees them."""

from __future__ import annotations

import fnmatch
import json
import time
from typing import Any, Dict, Set

import pytest

from dev.tables import iam
from tests.support.aws.fake_aws import FakeAws

# Options under which a module makes every call that it can make.
EVERYTHING: Dict[str, Dict[str, Any]] = {
    "cpu_credits": {"metrics": True},
    "ebs": {"metrics": True},
    "instance_type_info": {"instance_types": ["m5.large"], "source": "api"},
    "sizing": {"metrics": True, "ask_prices": True, "need": {"vcpus": 1}},
}
CHANGES: Dict[str, Dict[str, Any]] = {
    "cpu_credits": {"metrics": True, "specification": "unlimited", "alarm_percent": 20, "allow_cost": True},
    "enhanced_networking": {"ena": "enabled", "allow_stop": True},
    "network_interfaces": {"count": 2, "allow_attach": True},
}
# What AWS asks for besides the calls: tags that are written together with what they are on.
IMPLIED = {"network_interfaces": {"ec2:CreateTags"}}
SERVICES = {
    "GetMetricData": "cloudwatch",
    "DescribeAlarms": "cloudwatch",
    "PutMetricAlarm": "cloudwatch",
    "DeleteAlarms": "cloudwatch",
    "GetProducts": "pricing",
}


@pytest.fixture
def fleet(aws: FakeAws, monkeypatch: pytest.MonkeyPatch) -> FakeAws:
    """One instance for each call: burstable, spot, in a group, without ENA."""
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    aws.credits[aws.add(1, "t3.micro")] = "standard"
    aws.add(2, InstanceLifecycle="spot")
    aws.add(3, Placement={"AvailabilityZone": "eu-west-1a", "GroupName": "together"})
    aws.groups = [{"GroupName": "together", "Strategy": "cluster"}]
    aws.add(4, "r4.large", EnaSupport=False)
    return aws


def allowed(name: str) -> Set[str]:
    """The actions of a policy."""
    content = json.loads((iam.FOLDER / name).read_text(encoding="utf-8"))
    return {action for statement in content["Statement"] for action in statement["Action"]}


def called(aws: FakeAws) -> Set[str]:
    """The actions that the endpoint saw."""
    names = {name.split()[0] for name in aws.calls}
    return {f"{SERVICES.get(name, 'ec2')}:{name}" for name in names}


def options_of(module: str, aws: FakeAws, more: Dict[str, Dict[str, Any]]) -> Dict[str, Any]:
    """The module's options."""
    options = dict(more.get(module, {}))
    if module == "instance_type_info":
        return options
    if "ena" in options:
        last = list(aws.instances)[-1]
        options["hosts"] = [{"instance_id": last, "drivers_in_use": ["vif"], "drivers_available": ["ena"]}]
    return {**options, "filters": {}}


@pytest.mark.parametrize("module", iam.READ)
def test_a_module_calls_only_what_its_policy_allows(run: Any, fleet: FakeAws, module: str) -> None:
    result = run(module, **options_of(module, fleet, EVERYTHING))
    assert not result.get("failed"), result["msg"]
    assert called(fleet) == allowed(f"{module}.json")


@pytest.mark.parametrize("module", iam.CHANGE)
def test_a_change_calls_only_what_its_policy_allows(run: Any, fleet: FakeAws, module: str) -> None:
    result = run(module, **options_of(module, fleet, CHANGES))
    assert result["changed"]
    if module in ("cpu_credits", "network_interfaces"):
        assert run(module, filters={}, state="restored")["changed"]
    assert called(fleet) | IMPLIED.get(module, set()) == allowed(f"{module}-change.json")


def test_a_policy_for_interfaces_lets_those_of_others_alone() -> None:
    content = json.loads((iam.FOLDER / "network_interfaces-change.json").read_text(encoding="utf-8"))
    on_interfaces = {
        statement["Sid"]: statement.get("Condition")
        for statement in content["Statement"]
        if "network-interface" in str(statement["Resource"])
    }
    assert on_interfaces == {
        "Create": None,
        "TagNew": {"StringEquals": {"ec2:CreateAction": "CreateNetworkInterface"}},
        "ChangeOurs": {"Null": {"aws:ResourceTag/nearmetal:attached-to": "false"}},
    }


def test_a_policy_for_tags_allows_one_key_and_no_request_without_keys() -> None:
    content = json.loads((iam.FOLDER / "enhanced_networking-change.json").read_text(encoding="utf-8"))
    (remember,) = [statement for statement in content["Statement"] if "ec2:DeleteTags" in statement["Action"]]
    assert remember["Condition"] == {
        "ForAllValues:StringEquals": {"aws:TagKeys": ["nearmetal:start-again"]},
        "Null": {"aws:TagKeys": "false"},
    }


def test_a_policy_for_alarms_allows_those_of_the_collection_and_no_others(run: Any, fleet: FakeAws) -> None:
    run("cpu_credits", filters={}, alarm_percent=20, allow_cost=True)
    content = json.loads((iam.FOLDER / "cpu_credits-change.json").read_text(encoding="utf-8"))
    (alarm,) = [statement for statement in content["Statement"] if "cloudwatch:DeleteAlarms" in statement["Action"]]
    region, account, kind, pattern = alarm["Resource"].split(":")[3:]
    assert (region, account, kind) == ("*", "*", "alarm")
    assert fleet.alarms
    assert all(fnmatch.fnmatchcase(name, pattern) for name in fleet.alarms)
    assert not fnmatch.fnmatchcase("somebody-elses", pattern)


def test_the_files_are_what_the_generator_writes() -> None:
    written = {path.name: path.read_text(encoding="utf-8") for path in iam.FOLDER.iterdir()}
    assert written == iam.texts()
