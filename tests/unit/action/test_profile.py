# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the task `profile` writes on the controller, whatever the host sends."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.action import profile
from ansible_collections.nearmetal.ec2.plugins.module_utils._profile.folding import Folder, Tree
from ansible_collections.nearmetal.ec2.plugins.module_utils._profile.profiling import packed
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._ansible import by_agent

RECORDED = Path(__file__).parents[1] / "profile/recorded/odd.txt"


def ran(monkeypatch: pytest.MonkeyPatch, folder: Path, stacks: Any, said: List[str], **task: Any) -> Dict[str, Any]:
    answer = {
        "changed": False,
        "msg": "profile: 5 samples",
        "samples": 5,
        "top": [{"name": 1, "own": "?", "share": []}],
        "counters": {"cpus": 2},
        "advice": [{"name": "runnable", "says": "fewer threads, or more CPUs", "knob": None}],
    }
    if stacks != "none":
        answer["stacks"] = stacks
    monkeypatch.setattr(by_agent, "measure", lambda *_arguments: dict(answer))
    monkeypatch.setattr(profile, "report_directory", lambda: str(folder))
    action = object.__new__(profile.ActionModule)
    about = {"args": {}, "async_val": 0, "check_mode": False, "delegate_to": None, "diff": False, "no_log": False}
    action._task = SimpleNamespace(action="nearmetal.ec2.profile", **{**about, **task})
    action._display = SimpleNamespace(warning=said.append)
    result: Dict[str, Any] = action.run(None, {"inventory_hostname": "../redis 1"})
    return result


def test_page_and_stacks_are_written_for_their_owner_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = Folder()
    folder.add(RECORDED.read_text("utf-8").splitlines(keepends=True))
    result = ran(monkeypatch, tmp_path, packed(folder.tree()), [])
    assert "stacks" not in result
    folded, page, document = (Path(result[name]) for name in ("folded", "page", "document"))
    assert {path.parent for path in (folded, page, document)} == {tmp_path / "profile"}
    assert page.name.startswith(".._redis_1-")
    assert {path.stat().st_mode & 0o777 for path in (folded, page, document)} == {0o600}
    assert sum(int(line.rpartition(" ")[2]) for line in folded.read_text().splitlines()) == 5
    assert "<li>fewer threads, or more CPUs</li>" in page.read_text()


def test_counters_alone_are_a_document_without_a_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    result = ran(monkeypatch, tmp_path, "none", [])
    assert "page" not in result
    written = json.loads(Path(result["document"]).read_text())
    assert (written["host"], written["result"]["counters"]) == ("../redis 1", {"cpus": 2})


@pytest.mark.parametrize("stacks", ["", "?", 5, None, "eJwDAAAAAAE=", packed(Tree(["a"], [7], [0], [1]))])
def test_stacks_of_another_form_are_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stacks: Any) -> None:
    said: List[str] = []
    result = ran(monkeypatch, tmp_path, stacks, said)
    assert (result["msg"], "page" in result) == ("profile: 5 samples", False)
    assert "sent stacks of another form" in said[0]


def test_a_secret_task_writes_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert "page" not in ran(monkeypatch, tmp_path, packed(Tree([], [], [], [])), [], no_log=True)
    assert list(tmp_path.iterdir()) == []
