# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays of `prove` without connections: the action, with the host's module in this process."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Dict, List, Optional

from ansible.errors import AnsibleConnectionFailure
from ansible_collections.nearmetal.ec2.plugins.action import prove as action
from ansible_collections.nearmetal.ec2.plugins.modules import prove
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._prove import client

from tests.support.fake_kernel import CLOCK, FakeKernel

Call = Callable[..., Dict[str, Any]]
CURRENT = f"{CLOCK}/current_clocksource"
OPTIONS: Dict[str, Any] = {
    "tune": {"concerns": {"clocksource": {"source": "tsc"}}},
    "settle": 0,
    "seconds": 1,
    "seed": 4711,
}


class Play(action.ActionModule):
    """The action, with the host's module in this process in place of a connection."""

    def __init__(self, call: Call, host: FakeKernel) -> None:
        self._call, self._fake = call, host
        self._connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir=None))
        self.said: List[str] = []
        self._display = SimpleNamespace(display=self.said.append)
        self.steps: List[str] = []
        self.before_step: "Callable[[int], Optional[Dict[str, Any]]]" = lambda _number: None

        self.no_log = False
        self.client: Any = None  # the action of the client hosts, if there are some
        self.others: Dict[str, Any] = {}  # of those that have another

    def __call__(self, check: bool = False, **options: Any) -> Dict[str, Any]:
        given = {"args": {**OPTIONS, **options}, "check_mode": check, "no_log": self.no_log}
        self._task = SimpleNamespace(action="nearmetal.ec2.prove", async_val=0, **given)
        return self.run(
            task_vars={"inventory_hostname": "db-1", "hostvars": {key: {} for key in ("db-1", "client-1", "client-2")}}
        )

    def on_client(self, name: str, task_vars: Dict[str, Any]) -> client.Client:
        return client.Client(name, self.others.get(name, self.client), task_vars)

    def _execute_module(self, module_args: Dict[str, Any], **_more: Any) -> Dict[str, Any]:
        self.arguments = module_args["wanted"]
        self.steps.append(self.arguments["step"])
        instead = self.before_step(len(self.steps))
        return instead or self._call(prove.main, self._fake, self._task.check_mode, **self.arguments)

    def _early_needs_tmp_path(self) -> bool:
        return False

    def lose(self) -> Dict[str, Any]:
        """Every later step finds the connection dead, without pipelining: a folder of Ansible is left on the host."""
        folder = "~/.ansible/tmp/ansible-tmp-1"
        shell = SimpleNamespace(tmpdir=folder, remove=lambda path, recurse: f"rm -rf {path}")
        self._connection, self._cleanup_remote_tmp = SimpleNamespace(_shell=shell), True
        self.before_step = lambda _number: {"unreachable": True, "msg": "no route to host"}
        return self.before_step(0) or {}

    def _low_level_execute_command(self, cmd: str, **_more: Any) -> Dict[str, Any]:
        raise AnsibleConnectionFailure(f"no route to host for {cmd}")


def current(host: FakeKernel) -> str:
    return (Path(host.root) / CURRENT.lstrip("/")).read_text().strip()


FINE_LOAD: Dict[str, Any] = {"code": 0, "output": "ops 1 1/s larger", "end": "", "message": "", "seconds": 1.0}


def load(host: FakeKernel, tuned: int, untuned: int = 100) -> str:
    """A load whose figure depends on the clock source."""
    return f'[ "$(cat {host.root}{CURRENT})" = tsc ] && echo ops {tuned} 1/s larger || echo ops {untuned} 1/s larger'
