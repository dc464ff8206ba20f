# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An unreadable file of a run of prove doesn't prevent restore, and tune says what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.modules import restore, tune

from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import fresh
from tests.support.hosts import files_of
from tests.support.prove.experiments import MEMORY, SWAPPINESS, WANTED, Call, Steps, current, files, swappiness

STATE = "/run/nearmetal/prove.json"


def endless(text: str) -> str:
    return text.replace('"abandon_after": 900', '"abandon_after": 1e999')


@pytest.mark.parametrize("spoil", [lambda _text: "{nonsense", lambda _text: "", endless])
@pytest.mark.parametrize("by_hand", [False, True])
def test_restore_goes_on_where_nobody_can_read_what_runs(
    tmp_path: Path, call: Call, spoil: Callable[[str], str], by_hand: bool
) -> None:
    host = FakeKernel(tmp_path, files_of("xen_hvm"))
    steps = Steps(call, host)
    steps("begin")
    steps("measure", state="tuned")
    path = Path(host.root) / STATE.lstrip("/")
    path.write_text(spoil(path.read_text()))
    refused = call(tune.main, host, **WANTED)
    assert refused["msg"].startswith(f"{STATE} isn't what prove wrote (")
    assert "remove it, and run restore" in refused["msg"]
    assert command(["reapply", "--if-changed"], host) == 1
    assert current(host) == "tsc", "the unit leaves it to whoever removes the file"
    if by_hand:
        assert command(["restore"], host) == 0
    else:
        assert not call(restore.main, host).get("failed")
    assert current(host) == "xen"
    path.unlink()
    assert call(tune.main, host, **WANTED)["changed"]


@pytest.mark.parametrize("ends", ["restore", "timer"])
def test_a_host_comes_back_where_only_what_is_compared_cannot_be_read(tmp_path: Path, call: Call, ends: str) -> None:
    host = FakeKernel(tmp_path, files_of("xen_hvm"))
    call(tune.main, host, **MEMORY)
    before, steps = files(host), Steps(call, host)
    steps("begin", tune={"concerns": {**WANTED["concerns"], **MEMORY["concerns"]}})
    steps("measure", state="tuned")
    path = Path(host.root) / STATE.lstrip("/")
    content = json.loads(path.read_text())
    path.write_text(json.dumps({name: value for name, value in content.items() if name != "difference"}))
    assert steps("measure", state="tuned")["msg"].startswith(f"{STATE} isn't what prove wrote (no 'difference')")
    if ends == "timer":
        assert command(["expire", "prove"], host) == 0
    else:
        assert not call(restore.main, host, concerns=["clocksource"]).get("failed")
    assert (current(host), swappiness(host), files(host)) == ("xen", "1", before)


@pytest.mark.parametrize("value", [None, "not a word", ["1"], 7])
def test_the_value_of_another_tuning_is_checked_before_it_is_written(tmp_path: Path, call: Call, value: Any) -> None:
    host = fresh(tmp_path, "nitro_big")
    steps = Steps(call, host)
    steps("begin", tune=MEMORY, against={"concerns": {"memory": {"swappiness": 10}}})
    path = Path(host.root) / STATE.lstrip("/")
    content = json.loads(path.read_text())
    content["difference"][0]["before"] = value
    path.write_text(json.dumps(content))
    host.written.clear()
    refused = steps("measure", state="untuned")["msg"]
    assert refused.startswith(f"{STATE} isn't what prove wrote (")
    assert not [text for name, text in host.written if name == SWAPPINESS]
    assert swappiness(host) == "60"
