# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the task `tune` asks of the agent."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Dict, List

import pytest
from ansible import constants as C
from ansible_collections.nearmetal.ec2.plugins.action import tune
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._ansible import plays


@pytest.mark.parametrize(
    ("callback", "check", "drawn"),
    [(plays.CALLBACK, False, True), ("ansible.builtin.default", False, False), ("ansible.builtin.default", True, True)],
)
def test_the_agent_observes_for_a_picture_only_if_a_report_may_have_one(
    monkeypatch: pytest.MonkeyPatch, callback: str, check: bool, drawn: bool
) -> None:
    monkeypatch.setattr(tune, "require_report_directory", lambda: None)
    requests: List[Dict[str, Any]] = []

    def execute(module_args: Dict[str, Any], **_more: Any) -> Dict[str, Any]:
        requests.append(module_args)
        return {"changed": False}

    action = object.__new__(tune.ActionModule)
    action._task = SimpleNamespace(action="tune", args={"workload": ["web"]}, async_val=0, check_mode=check)
    monkeypatch.setattr(C, "DEFAULT_STDOUT_CALLBACK", callback)
    monkeypatch.setattr(action, "_execute_module", execute)
    assert action.on_host(None, {}) == {"changed": False}
    assert [(request["more"], "agent" in request) for request in requests] == [({"drawn": drawn}, check)]


@pytest.mark.parametrize(
    ("callback", "brief", "kept"),
    [
        ("ansible.builtin.default", True, ["changed", "reboot_required"]),
        ("ansible.builtin.default", False, ["changed", "findings", "reboot_required"]),
        (plays.CALLBACK, True, ["changed", "findings", "reboot_required"]),
    ],
)
def test_ansible_keeps_of_the_hosts_of_a_rollout_only_what_somebody_reads(
    monkeypatch: pytest.MonkeyPatch, callback: str, brief: bool, kept: List[str]
) -> None:
    action = object.__new__(tune.ActionModule)
    answer = {"changed": True, "findings": [], "reboot_required": False}
    monkeypatch.setattr(tune.HostAction, "run", lambda *_given: answer)
    monkeypatch.setattr(C, "DEFAULT_STDOUT_CALLBACK", callback)
    assert sorted(action.run(None, {"_tune_brief": brief})) == kept


@pytest.mark.parametrize(("given", "said"), [("wbe", "is web meant?"), (["base", "Redis"], "redis is a program")])
def test_a_wrong_workload_is_refused_before_the_host_is_asked(given: Any, said: str) -> None:
    action = object.__new__(tune.ActionModule)  # without a connection: whoever asked a host would fail
    action._task = SimpleNamespace(action="tune", args={"workload": given}, async_val=0, check_mode=False)
    result = action.on_host(None, {})
    assert result["failed"]
    assert said in result["msg"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"tune_reboot": "yes"},
            ["with tune_bake tune_reboot has no effect: the first boot of the image tunes its host"],
        ),
        (
            {"tune_reboot": True, "tune_health_command": "redis-cli ping"},
            ["with tune_bake tune_reboot and tune_health_command have no effect: "],
        ),
        ({"tune_reboot": "no", "tune_health_command": ""}, []),
    ],
)
@pytest.mark.parametrize("bake", [True, "false"])
def test_it_is_said_what_has_no_effect_where_an_image_is_made(
    monkeypatch: pytest.MonkeyPatch, given: Dict[str, Any], said: List[str], bake: Any
) -> None:
    action = object.__new__(tune.ActionModule)
    action._task = SimpleNamespace(action="tune", args={"bake": bake}, async_val=0, check_mode=True)
    action._templar = SimpleNamespace(template=lambda value: value)
    monkeypatch.setattr(action, "_execute_module", lambda **_more: {"changed": False})
    warnings = action.on_host(None, given).get("warnings", [])
    assert [sentence[: len(said[0])] for sentence in warnings] == (said if bake is True else [])
