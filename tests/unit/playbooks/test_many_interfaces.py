# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook `many_interfaces` attaches them, gives each its routes, and proves over all of their addresses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml

from tests.support.aws.fake_aws import FakeAws
from tests.support.fleet import Fleet
from tests.support.simulated import ROOT, simulate

RECORD = """
import json

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    _requires_connection = False

    def run(self, tmp=None, task_vars=None):
        with open(task_vars["asked"], "w") as stream:
            json.dump(self._task.args, stream)
        return super().run(tmp, task_vars)
"""


def test_interfaces_are_attached_and_proven_by_a_load_over_all_of_them(fleet: Fleet, aws: FakeAws) -> None:
    instance, asked = aws.add(1, "m5.4xlarge"), fleet.folder / "asked.json"
    plugins = fleet.folder / "collections/ansible_collections/nearmetal/ec2/plugins/action"
    (plugins / "prove.py").write_text(RECORD)
    (fleet.folder / "db-1").mkdir()
    host = {**simulate(Path(fleet.folder / "db-1"), "nitro"), "instance_id": instance, "asked": str(asked)}
    fleet.inventory({"db-1": host, "client-1": {}, "client-2": {}})
    wanted = {
        "target": "db-1",
        "many_interfaces_clients": ["client-1", "client-2"],
        "many_interfaces_addresses": ["10.0.0.12", "10.0.1.12", "10.0.2.12", "10.0.3.12"],
        "network_interfaces_regions": ["eu-west-1"],
        "network_interfaces_count": 4,
        "network_interfaces_allow_attach": True,
    }
    done = fleet.run("-e", json.dumps(wanted), playbook="nearmetal.ec2.many_interfaces", callback="default")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(aws.instances[instance]["NetworkInterfaces"]) == 4
    assert done.stdout.index("network_routes : ") < done.stdout.index("nearmetal.ec2.prove : ")
    given = json.loads(asked.read_text())
    assert given["load_on"] == ["client-1", "client-2"]
    assert given["benchmark_options"]["server"] == "10.0.0.12,10.0.1.12,10.0.2.12,10.0.3.12"
    assert given["tune"]["concerns"] == {"network_irq": {"policy": "auto", "rps": "auto"}}


@pytest.mark.parametrize("playbook", ["many_interfaces", "benchmark_between"])
@pytest.mark.parametrize("given", ["each", "10.0.0.12,10.0.1.12", ["10.0.0.12", "10.0.1.12"]])
def test_addresses_are_all_of_the_host_or_a_list_that_a_command_line_can_give_too(playbook: str, given: Any) -> None:
    plays = yaml.safe_load((ROOT / f"playbooks/{playbook}.yml").read_text())
    (text,) = [play["vars"]["addresses"] for play in plays if "addresses" in play.get("vars", {})]
    known = {
        "ansible_facts": {"all_ipv4_addresses": ["10.0.0.12", "10.0.1.12"]},
        f"{playbook.partition('_between')[0]}_addresses": given,
    }
    assert jinja2.Environment().from_string(text).render(known) == "['10.0.0.12', '10.0.1.12']"
