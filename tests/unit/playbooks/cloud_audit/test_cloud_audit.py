# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The roles and the playbook cloud_audit by ansible-playbook, on our own fake endpoint.

The hosts' own results are in the inventory (tests/support/fleet.py); the cloud side is the real code.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Dict, List

import pytest
import yaml

from tests.support.aws.fake_aws import FakeAws
from tests.support.fleet import GOOD_CLOCK, SLOW_CLOCK, Fleet, result_with

LOCAL = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
# Port 9 of loopback: nobody listens.
AWAY = {"ansible_host": "127.0.0.1", "ansible_port": 9, "ansible_connection": "ssh"}


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    """Hosts that are only variables."""
    return Fleet(tmp_path)


def named(report: Dict[str, Any], host: str) -> Dict[str, List[str]]:
    """concern → statuses, of a host in the report."""
    found: Dict[str, List[str]] = {}
    (entry,) = [element for element in report["hosts"] if element["name"] == host]
    for finding in entry["findings"]:
        found.setdefault(finding["concern"], []).append(finding["status"])
    return found


def test_findings_of_host_and_cloud_are_joined_per_host(fleet: Fleet, aws: FakeAws) -> None:
    pv = aws.add(1, "m3.large", VirtualizationType="paravirtual")
    burst = aws.add(2, "t3.micro")
    aws.credits[burst] = "unlimited"
    unreachable = aws.add(3, "c6in.32xlarge")
    fleet.inventory(
        {
            "old": {**LOCAL, "instance_id": pv, "module_result": result_with(SLOW_CLOCK)},
            "small": {**LOCAL, "instance_id": burst, "module_result": result_with(GOOD_CLOCK)},
            "lost": {**AWAY, "instance_id": unreachable, "fate": "unreachable"},
            "stranger": {**LOCAL, "module_result": result_with(GOOD_CLOCK)},
        }
    )
    done = fleet.run(playbook="nearmetal.ec2.cloud_audit")
    report = fleet.report()
    old = named(report, "old")
    assert old["clocksource"] == ["would_change"]
    assert old["instance_info"] == ["advice", "advice"]
    assert old["cpu_credits"] == ["not_applicable"]
    small = named(report, "small")
    assert small["clocksource"] == ["ok"]
    assert sorted(small["cpu_credits"]) == ["ok", "unknown"]
    # The API knows the instance of a host that can't be reached.
    assert "advice" in named(report, "lost")["network_interfaces"]
    stranger = named(report, "stranger")
    assert stranger["ebs"] == ["unknown"]
    assert stranger["clocksource"] == ["ok"]
    assert "sizing" in small
    # One call per operation serves all hosts of the play; seven modules look at the instances.
    assert aws.calls["DescribeInstances"] == 7
    assert aws.calls["DescribeVolumes"] == 2, "for ebs, and for sizing"
    assert not [name for name in aws.calls if name.startswith(("Modify", "Stop", "Start"))]
    assert "Traceback" not in done.stdout + done.stderr


def test_without_the_callback_the_report_is_joined_too(fleet: Fleet, aws: FakeAws) -> None:
    instance = aws.add(1, "m3.large", VirtualizationType="paravirtual")
    fleet.inventory({"old": {**LOCAL, "instance_id": instance, "module_result": result_with(SLOW_CLOCK)}})
    fleet.run(playbook="nearmetal.ec2.cloud_audit", callback="default")
    old = named(fleet.report(), "old")
    assert (old["clocksource"], old["instance_info"]) == (["would_change"], ["advice", "advice"])


def test_a_role_alone_registers_each_hosts_part(fleet: Fleet, aws: FakeAws) -> None:
    ids = [aws.add(number, "m5.24xlarge") for number in (1, 2)]
    aws.volumes = [
        {
            "VolumeId": "vol-1",
            "VolumeType": "io2",
            "Size": 10,
            "Iops": 90000,
            "Attachments": [{"InstanceId": ids[1], "Device": "/dev/sda"}],
        }
    ]
    fleet.inventory({f"host{index}": {**LOCAL, "instance_id": instance_id} for index, instance_id in enumerate(ids)})
    play = {
        "hosts": "all",
        "gather_facts": False,
        "become": True,  # the roles still use AWS as the user who runs Ansible
        "module_defaults": {"group/nearmetal.ec2.cloud": {"regions": ["eu-west-1"]}},
        "pre_tasks": [
            {
                "name": "Stand in for what nearmetal.ec2.instance_facts reads on a host with EBS on NVMe",
                "ansible.builtin.set_fact": {
                    "nearmetal": {
                        "ebs": {
                            "exceeded": [
                                {
                                    "device": "nvme1n1",
                                    "volume_iops_us": 0,
                                    "volume_throughput_us": 0,
                                    "instance_iops_us": 4200000,
                                    "instance_throughput_us": 0,
                                },
                                {"device": "../nvme1n1", "instance_iops_us": 1},
                            ]
                        }
                    },
                    "cacheable": True,
                },
                "when": "inventory_hostname == 'host1'",
            }
        ],
        "roles": [{"role": f"nearmetal.ec2.{name}"} for name in ("ebs", "placement", "network_interfaces")],
        "tasks": [
            {
                "name": "Show",
                "ansible.builtin.copy": {
                    "content": "{{ ebs_result | to_json }}",
                    "dest": f"{fleet.folder}/{{{{ inventory_hostname }}}}.json",
                    "mode": "0600",
                },
                "become": False,
            }
        ],
    }
    (fleet.folder / "site.yml").write_text(yaml.safe_dump([play]))
    done = fleet.run(playbook=str(fleet.folder / "site.yml"), callback="default")
    assert done.returncode == 0, done.stdout + done.stderr
    first, second = (yaml.safe_load((fleet.folder / f"host{index}.json").read_text()) for index in (0, 1))
    assert (first["instance_id"], first["volumes"]) == (ids[0], [])
    assert second["msg"] == "ebs: advice: the instance is the limit: 80,000 IOPS, its volumes could do 90,000"
    held = [finding["reason"] for finding in second["findings"] if finding["knob"] == "exceeded"]
    assert held == ["nvme1n1: held back by the instance's limit for 4.2 s since it was attached"]
    assert set(aws.calls.values()) == {1, 3}


def test_turning_ena_on_through_the_role(fleet: Fleet, aws: FakeAws) -> None:
    instance = aws.add(1, "r4.large", EnaSupport=False)
    fleet.inventory({"old": {**LOCAL, "instance_id": instance}})
    options = {"ena": "enabled", "allow_stop": True, "stop_timeout": 30}
    options["hosts"] = [{"instance_id": instance, "drivers_in_use": ["vif"], "drivers_available": ["ena"]}]
    role = {"role": "nearmetal.ec2.enhanced_networking"}
    role.update({f"enhanced_networking_{name}": value for name, value in options.items()})
    (fleet.folder / "site.yml").write_text(yaml.safe_dump([{"hosts": "all", "gather_facts": False, "roles": [role]}]))
    checked = fleet.run("--check", "--diff", playbook=str(fleet.folder / "site.yml"), callback="default")
    assert "ena_support" in checked.stdout
    assert aws.instances[instance]["EnaSupport"] is False
    done = fleet.run(playbook=str(fleet.folder / "site.yml"), callback="default")
    assert done.returncode == 0, done.stdout
    assert aws.instances[instance]["EnaSupport"] is True


def test_a_refusal_of_aws_ends_the_play_with_one_sentence(fleet: Fleet, aws: FakeAws) -> None:
    aws.fault("DescribeInstances", "UnauthorizedOperation")
    fleet.inventory({"any": {**LOCAL, "instance_id": aws.add(1)}})
    play = {"hosts": "all", "gather_facts": False, "roles": [{"role": "nearmetal.ec2.placement"}]}
    (fleet.folder / "site.yml").write_text(yaml.safe_dump([play]))
    done = fleet.run(playbook=str(fleet.folder / "site.yml"), callback="default")
    assert done.returncode == 2
    assert "see the module's policy in docs/iam/" in done.stdout
