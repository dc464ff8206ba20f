# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two hosts under the same load: how far the second is from the first, of known handicaps; nothing is changed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.action import compare as action
from ansible_collections.nearmetal.ec2.plugins.modules import prove
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._prove import client

from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of
from tests.support.prove.plays import Call, Play

HOSTS = ["metal-1", "guest-1"]


class Comparison(action.ActionModule):
    """The action, with the modules of both hosts in this process in place of connections."""

    def __init__(self, folder: Path, call: Call, figures: Dict[str, str]) -> None:
        self._folder, self._call, self._figures = folder, call, figures
        self.kernels: Dict[str, FakeKernel] = {}
        self.said: List[str] = []
        self._display = SimpleNamespace(display=self.said.append)

    def __call__(self, check: bool = False, **options: Any) -> Dict[str, Any]:
        given = {"hosts": HOSTS, "seconds": 1, "seed": 4711, "wait": 0, **options}
        self._task = SimpleNamespace(args=given, check_mode=check, no_log=False, become=True)
        return self.run(task_vars={"hostvars": {name: {} for name in HOSTS}})

    def on_client(self, name: str, task_vars: Dict[str, Any]) -> client.Client:
        boot = {"/proc/sys/kernel/random/boot_id": f"{len(self.kernels)}9999999-2222-3333-4444-555555555555\n"}
        host = self.kernels[name] = FakeKernel(self._folder / name, {**files_of("nitro"), **boot})
        its_action = Play(self._call, host)
        its_action._task = SimpleNamespace(no_log=False, check_mode=False, async_val=0)
        host_file = Path(host.root) / "figure"
        host_file.write_text(self._figures[name])

        def step(number: int) -> Any:
            command = its_action.arguments["command"].replace("FIGURE", str(host_file))
            return self._call(prove.main, host, **{**its_action.arguments, "command": command})

        its_action.before_step = step
        return client.Client(name, its_action, task_vars)

    def report_directory(self) -> str:
        return str(self._folder / "reports")


@pytest.mark.parametrize(
    ("figures", "line"),
    [
        (("ops 100 1/s larger", "ops 90 1/s larger"), "guest-1 10.0 % slower than metal-1 ("),
        (("p99 10 ms smaller", "p99 12 ms smaller"), "guest-1 20.0 % slower than metal-1 ("),
        (("p99 10 ms smaller", "p99 8 ms smaller"), "guest-1 20.0 % faster than metal-1 ("),
        (("ops 100 1/s larger", "ops 100.1 1/s larger"), "guest-1 as fast as metal-1 within 2 % ("),
    ],
)
def test_a_handicap_is_found_with_its_size(figures: "tuple[str, str]", line: str, tmp_path: Path, call: Call) -> None:
    compare = Comparison(tmp_path, call, dict(zip(HOSTS, figures)))
    result = compare(command="cat FIGURE")
    assert (result["changed"], result["msg"].startswith(line)) == (False, True), result
    assert Path(result["record"]).read_text("utf-8").count('"kind":"measurement"') == len(compare.said)
    assert [host.written for host in compare.kernels.values()] == [[], []]


def test_a_load_that_fails_on_the_second_host_is_no_figure(tmp_path: Path, call: Call) -> None:
    compare = Comparison(tmp_path, call, dict(zip(HOSTS, ("ops 100 1/s larger", "no figure"))))
    assert compare(command="cat FIGURE")["msg"].startswith("guest-1 against metal-1: unsafe: the load failed in ")


@pytest.mark.parametrize(
    ("options", "msg"),
    [
        ({"command": "true", "hosts": ["metal-1"]}, "compare.hosts must be two hosts of the inventory, the one to "),
        ({"command": "true", "hosts": ["metal-1", "db-9"]}, "compare.hosts must be two hosts of the inventory, the "),
        ({}, "prove.command or prove.benchmark is required, and not both: the load of one measurement is a command "),
        ({"command": "true", "pairs": 2}, "prove.pairs must be a whole number from 6 to 200, not 2"),
    ],
)
def test_what_can_t_be_compared_is_refused(options: Dict[str, Any], msg: str, tmp_path: Path, call: Call) -> None:
    result = Comparison(tmp_path, call, {})(**options)
    assert (result["failed"], result["msg"].startswith(msg)) == (True, True), result["msg"]


def test_in_check_mode_nothing_runs(tmp_path: Path, call: Call) -> None:
    compare = Comparison(tmp_path, call, {})
    assert compare(check=True, command="true")["msg"] == "guest-1 would be compared with metal-1, in at most 40 pairs"
    assert compare.kernels == {}
