# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run names what it could not test, and keeps only what it tested."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, Optional

import pytest

from tests.support.boot_trees import debian
from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import fresh
from tests.support.prove.experiments import MEMORY, files, swappiness
from tests.support.prove.plays import OPTIONS, Play, current, load

# More requests while the kernel swaps little.
REQUESTS = "echo ops $((200 - $(cat {}/proc/sys/vm/swappiness))) 1/s larger"


def test_settings_that_are_not_tested_are_named_and_not_kept(tmp_path: Path, play: Play) -> None:
    play._fake = host = debian(tmp_path / "debian")
    before = host.arguments()
    queues = {"somaxconn": 8192, "tcp_rmem": "4096 131072 33554432"}
    tuning = {"clocksource": {"tsc_reliable": "enabled"}, "network_stack": queues, "memory": {"swappiness": 1}}
    result = play(command=REQUESTS.format(host.root), tune={"concerns": tuning}, abandon_after=0)
    assert (result["kept"], result["reboot_required"], result["written"]) == (True, False, []), result
    (line,) = [line for line in play.said if line.startswith("  not tested: ")]
    assert "network_stack.somaxconn, network_stack.tcp_rmem: a running program keeps the old value: a listening" in line
    assert "clocksource.tsc_reliable: " in line
    assert line.endswith("; tune sets it")
    assert (host.arguments(), swappiness(host)) == (before, "1")
    report = Path(result["reports"][1]).read_text().replace("\\", "")
    assert "- not tested: network_stack.somaxconn: a running program keeps the old value" in report


@pytest.mark.parametrize("keep", ["better", "not_worse"])
def test_a_setting_that_no_load_can_show_is_never_kept(keep: str, tmp_path: Path, play: Play) -> None:
    play._fake = host = fresh(tmp_path / "big", "nitro_big")
    before = files(host)
    result = play(
        command="echo ops 100 1/s larger",
        tune={"concerns": {"network_stack": {"somaxconn": 1}}},
        keep=keep,
        abandon_after=0,
    )
    assert result["msg"].startswith("nothing of this tuning can be tested: network_stack.somaxconn (a running program")
    assert (result["failed"], files(host)) == (True, before)


# A server keeps the backlog that it got when it started.
BACKLOG, SERVED = "{0}/proc/sys/net/core/somaxconn", "{0}/served"
STARTS, SERVES = f"cp {BACKLOG} {SERVED}", f"echo ops $(cat {SERVED}) 1/s larger"


@pytest.mark.parametrize(("backlog", "verdict", "stays"), [(8192, "better", 8192), (1, "worse", 4096)])
def test_a_restart_lets_a_program_take_the_new_value(
    backlog: int, verdict: str, stays: int, tmp_path: Path, play: Play
) -> None:
    play._fake = host = fresh(tmp_path / "big", "nitro_big")
    tuning = {"concerns": {"network_stack": {"somaxconn": backlog}}}
    starts, serves = STARTS.format(host.root), SERVES.format(host.root)
    result = play(command=serves, restart=starts, tune=tuning, abandon_after=0)
    assert result["verdict"]["verdict"] == verdict, result
    assert result["tested"] == ["network_stack.somaxconn"]
    assert int(Path(SERVED.format(host.root)).read_text()) == stays, "it serves in the state that stays"
    assert f"restarts: {starts}" in Path(result["reports"][1]).read_text().replace("\\", "")


def test_a_restart_that_fails_when_tuned_is_unsafe(tmp_path: Path, play: Play) -> None:
    play._fake = host = fresh(tmp_path / "big", "nitro_big")
    before = files(host)
    starts = f'[ "$(cat {BACKLOG.format(host.root)})" != 1 ] || exit 3'
    tuning = {"concerns": {"network_stack": {"somaxconn": 1}}}
    result = play(command="echo ops 100 1/s larger", restart=starts, tune=tuning, abandon_after=0)
    assert result["msg"].endswith("the host wasn't healthy: the restart command ended with code 3"), result
    assert (result["verdict"]["verdict"], files(host)) == ("unsafe", before)


def test_a_restart_is_not_for_states_that_need_a_reboot(play: Play) -> None:
    failed = play(command="true", restart="true", reboot=True)
    assert "prove.restart and prove.reboot exclude each other" in failed["msg"]


def test_what_is_written_with_a_tested_option_is_named(tmp_path: Path, play: Play) -> None:
    play._fake = host = debian(tmp_path / "debian")
    idle = f"{host.root}/sys/devices/system/cpu/cpu0/cpuidle/state2/disable"
    power = {"cpu_power": {"idle": "c1", "method": "both"}}
    result = play(command=f"echo ops 1$(cat {idle})0 1/s larger", tune={"concerns": power}, abandon_after=0)
    assert (result["kept"], result["reboot_required"], result["written"]) == (True, True, ["cpu_power.method"]), result
    assert any(line.startswith("  written, untested: cpu_power.method: ") for line in play.said)
    assert any(line.endswith("; needs a reboot") for line in play.said)


def test_a_run_of_an_older_version_that_tested_what_no_load_shows_is_not_resumed(
    host: FakeKernel, play: Play, tmp_path: Path
) -> None:
    def lost(number: int) -> Optional[Dict[str, Any]]:
        return play.lose() if number == 6 else None

    play.before_step = lost
    play(command=load(host, 120))
    (record,) = tmp_path.rglob("*.jsonl")
    start, *measured = record.read_text().splitlines()
    older = json.loads(start)
    older["tested"].append("network_stack.somaxconn")
    record.write_text("\n".join([json.dumps(older), *measured]) + "\n")
    play.before_step = lambda _number: None
    tuning = {"concerns": {**OPTIONS["tune"]["concerns"], "network_stack": {"somaxconn": 8192}}}
    failed = play(tune=tuning, resume=str(record))
    assert "resume names a run that compared clocksource.source, network_stack.somaxconn" in failed["msg"]
    assert "the host is as it was before" in failed["msg"]
    assert current(host) == "xen"


def test_what_only_the_other_tuning_sets_is_not_called_written(tmp_path: Path, play: Play) -> None:
    play._fake = host = debian(tmp_path / "debian")
    result = play(
        command=REQUESTS.format(host.root),
        tune=MEMORY,
        against={"concerns": {"clocksource": {"tsc_reliable": "enabled"}}},
        abandon_after=0,
    )
    assert (result["kept"], result["untested"]) == (True, []), result
    assert not any("untested" in line or "not tested" in line for line in play.said)
    (line,) = [line for line in play.said if line.startswith("  left out: ")]
    assert line.startswith("  left out: clocksource.tsc_reliable: ")
    assert line.endswith("; only the other tuning sets it")
    assert "left out: clocksource.tsc" in Path(result["reports"][1]).read_text().replace("\\", "")
