# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What rollout says of a host that it doesn't reach, or that another rollout has."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Dict, List

import pytest
from ansible.errors import AnsibleConnectionFailure
from ansible_collections.nearmetal.ec2.plugins.action.rollout import ActionModule
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._ansible import by_agent


class Said:
    """Stands in for Ansible's display."""

    def __init__(self) -> None:
        self.lines: List[str] = []
        self.display = self.lines.append


def on_host(step: str, **known: Any) -> "tuple[Dict[str, Any], List[str]]":
    """The result of a step on a host, and what was displayed."""
    action, said = ActionModule.__new__(ActionModule), Said()
    action._display, action._task = said, SimpleNamespace(delegate_to=None, check_mode=False)
    given = {"step": step, "record": "r.jsonl", "run": "r.jsonl", "lease": 86400.0}
    return action._on_host(given, {"inventory_hostname": "h1", **known}), said.lines


def test_whoever_was_not_told_to_stay_is_named_with_the_command_that_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_given: Any) -> None:
        raise AnsibleConnectionFailure("no route")

    monkeypatch.setattr(by_agent, "measure", fail)
    result, said = on_host("release", rollout_claimed={"claimed": True, "lease": 86400})
    assert result["unreachable_host"]
    assert said[0].startswith(
        "ROLLOUT  h1 can't be reached, and restores itself when its lease ends, or: ansible h1 -b"
    )
    assert said[0].endswith("-a 'step=release record=r.jsonl'")
    without = on_host("release", rollout_claimed={"claimed": True, "lease": 0})[1]
    assert without[0].startswith(
        "ROLLOUT  h1 can't be reached, and belongs to this rollout until you run: ansible h1 -b"
    )
    lost = {"unreachable_host": True}
    for opened, words in (({"lease": 86400}, "restores itself"), ({"lease": 0}, "belongs to this rollout")):
        assert f"and {words}" in on_host("release", rollout_claimed=lost, rollout_opened=opened)[1][0]
    assert on_host("look")[1] == []


@pytest.mark.parametrize(("lease", "said"), [(86400, 0), (0, 1)])
def test_a_host_that_no_timer_brings_back_is_named(monkeypatch: pytest.MonkeyPatch, lease: int, said: int) -> None:
    monkeypatch.setattr(by_agent, "measure", lambda *_given: {"claimed": True, "lease": lease, "msg": "claimed"})
    words = "ROLLOUT  h1 isn't brought back by itself if nobody decides: that takes systemd and Python 3.7 or later"
    assert on_host("claim")[1] == [words] * said


def test_a_host_of_another_rollout_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_agent, "measure", lambda *_given: {"claimed": False, "msg": "another rollout has this host"})
    assert on_host("claim")[1] == ["ROLLOUT  h1 is left out: another rollout has this host"]


def test_a_host_whose_lease_ended_before_the_decision_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_agent, "measure", lambda *_given: {"released": False, "msg": "its lease had ended before"})
    assert on_host("release", rollout_claimed={"claimed": True})[1] == [
        "ROLLOUT  h1 was restored before it could be told that it stays tuned: its lease had ended"
    ]
    assert on_host("release", rollout_claimed={"unreachable_host": True})[1] == []
