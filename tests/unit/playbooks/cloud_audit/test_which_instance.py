# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""No host can have another host's instance changed: only the inventory assigns instances to hosts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Dict

import pytest
import yaml
from ansible_collections.nearmetal.ec2.plugins.filter import instance_ids
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._ansible.instances import drivers, reports, volumes

from tests.support.aws.fake_aws import FakeAws
from tests.support.fleet import Fleet

ONE, TWO = "i-00000000000000001", "i-00000000000000002"


def says(named: str, **more: Any) -> Dict[str, Any]:
    """The variables of a host that names its instance itself, with the driver ena in its image."""
    drivers = {"in_use": ["vif"], "available": ["ena"]}
    counters = {f"{of}_{limit}_us": 1 for of in ("volume", "instance") for limit in ("iops", "throughput")}
    ebs = {"exceeded": [{"device": "nvme1n1", **counters}]}
    reasons = {"instance": {"instance_id": named}, "drivers": drivers, "ebs": ebs}
    return {"ansible_facts": {"nearmetal": reasons}, **more}


def unconfirmed(hosts: Dict[str, Any]) -> Any:
    """The result of the filter of that name for all hosts."""
    return instance_ids.FilterModule().filters()["unconfirmed_ids"](list(hosts), hosts)


def test_only_an_id_that_one_host_has_from_the_inventory_is_confirmed() -> None:
    assert unconfirmed({"a": says(ONE), "b": says(TWO, instance_id=TWO)}) == [ONE]
    assert unconfirmed({"a": says(ONE), "b": says(ONE, instance_id=ONE)}) == []
    assert unconfirmed({"a": {"instance_id": ONE}, "b": {"instance_id": ONE}}) == [ONE]
    # A fact can shadow a variable of the inventory.
    assert unconfirmed({"a": {"ansible_facts": {"instance_id": ONE}, "instance_id": ONE}}) == [ONE]
    assert unconfirmed({"a": {}, "b": {"instance_id": "localhost"}}) == []


def test_no_host_reports_for_an_instance_that_the_inventory_gives_another_host() -> None:
    hosts = {"a": says(ONE, instance_id=ONE), "liar": says(ONE), "c": says(TWO)}
    for of_host in (drivers, volumes):
        elements = reports(of_host, (hosts[name] for name in ("liar", "a", "c")))
        assert [element["instance_id"] for element in elements] == [ONE, TWO]
    assert instance_ids.FilterModule().filters()["instance_ids"](["liar", "a", "c"], hosts) == [ONE, TWO]


def test_contradicting_reports_on_an_instance_leave_it_as_it_is(run: Any, aws: FakeAws) -> None:
    instance = aws.add(1, "r4.large", EnaSupport=False)
    words = [{"instance_id": instance, "drivers_available": available} for available in ([], ["ena"])]
    result = run("enhanced_networking", instance_ids=[instance], ena="enabled", allow_stop=True, hosts=words)
    assert not result["changed"]
    assert "exactly one host" in next(finding["reason"] for finding in result["findings"] if finding["knob"] == "ena")
    assert "StopInstances" not in aws.calls


@pytest.mark.parametrize("by", ["role", "module"])
def test_hosts_that_name_anothers_instance_change_nothing(by: str, tmp_path: Path, aws: FakeAws) -> None:
    attacker, victim = (aws.add(number, "r4.large", EnaSupport=False) for number in (1, 2))
    burst, spared = (aws.add(number, "t3.micro") for number in (3, 4))
    aws.credits = {burst: "standard", spared: "standard"}
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    named = {"honest": attacker, "liar": victim, "burst": burst, "shadow": spared}
    facts = {name: says(instance)["ansible_facts"]["nearmetal"] for name, instance in named.items()}
    fleet = Fleet(tmp_path)
    fleet.inventory(
        {
            "honest": {**local, "instance_id": attacker},
            "liar": local,
            "burst": {**local, "instance_id": burst},
            "shadow": {**local, "instance_id": "i-00000000000000009"},
        }
    )
    variables = {"enhanced_networking_ena": "enabled", "enhanced_networking_allow_stop": True}
    variables.update(cpu_credits_specification="unlimited", cpu_credits_allow_cost=True, facts=facts)
    words = {"nearmetal": "{{ facts[inventory_hostname] }}", "cacheable": True}
    shadow = {"instance_id": spared, "cacheable": True}
    tell = [
        {"name": "Say it as a module's answer does", "ansible.builtin.set_fact": words},
        {
            "name": "Shadow the inventory",
            "ansible.builtin.set_fact": shadow,
            "when": "inventory_hostname == 'shadow'",
        },
    ]
    roles = [{"role": f"nearmetal.ec2.{name}"} for name in ("enhanced_networking", "cpu_credits")]
    if by == "module":
        options = {"instance_ids": [attacker, victim], "ena": "enabled", "allow_stop": True}
        once = {"delegate_to": "localhost", "run_once": True}
        tell.append({"name": "Turn it on", "nearmetal.ec2.enhanced_networking": options, **once})
        del roles[0]
    play = {"hosts": "all", "gather_facts": False, "vars": variables, "pre_tasks": tell, "roles": roles}
    (tmp_path / "site.yml").write_text(yaml.safe_dump([play]))
    done = fleet.run(playbook=str(tmp_path / "site.yml"), callback="default")
    assert done.returncode == 0, done.stdout + done.stderr
    assert [aws.instances[instance]["EnaSupport"] for instance in (attacker, victim)] == [True, False]
    assert aws.credits == {burst: "unlimited", spared: "standard"}
