# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an older version has armed comes back, or is kept, with this one: `older` has the files that it wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Dict, Sequence

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.lease.record import (
    CHANGE,
    REBOOTED,
    SWITCHED,
    Kind,
    read,
    write,
)
from ansible_collections.nearmetal.ec2.plugins.modules import confirm, restore, tune

from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of
from tests.support.prove.experiments import Steps, current, files, swappiness
from tests.support.prove.reboots import rebooting
from tests.unit.engine.lease.test_confirmation import cutting
from tests.unit.engine.lease.test_faults import NEXT_BOOT, Systemd, source_wanted, traces, tuned
from tests.unit.prove.host.test_reboots import RebootSteps

__all__ = ["cutting"]

Call = Callable[..., Dict[str, Any]]
OLDER = Path(__file__).parent / "older"
FILES = {CHANGE.path: "dead-man", SWITCHED.path: "switched", REBOOTED.path: "rebooted"}
SWITCHING = {"concerns": {"clocksource": {"source": "tsc"}, "memory": {"swappiness": 1}}}


def armed_by_older(host: FakeKernel, kind: Kind, without: Sequence[str] = ()) -> None:
    """Put the file and the timer of the older version in the place of this version's."""
    content = json.loads((OLDER / f"{FILES[kind.path]}.json").read_text())
    place = Path(host.root) / kind.path[1:]
    assert content.keys() == json.loads(place.read_text()).keys() - {"restarts"}, "which no older version has"
    place.write_text(json.dumps({name: value for name, value in content.items() if name not in without}))
    for unit in (Path(host.root) / "run/systemd/system").glob("nearmetal-*"):
        unit.unlink()  # systemd had them from systemd-run
    (Path(host.root) / kind.timer.agent[1:]).write_text("the older agent")


@pytest.mark.usefixtures("cutting")
@pytest.mark.parametrize("ends", ["confirmed", "timer", "reboot", "restored"])
def test_a_change_that_waits(tmp_path: Path, call: Call, ends: str) -> None:
    host = Systemd(tmp_path, files_of("xen_hvm"))
    tuned(call, host, "tsc")
    assert call(confirm.main, host)["changed"]
    tuned(call, host, "hpet")
    armed_by_older(host, CHANGE)
    if ends == "confirmed":
        assert call(confirm.main, host)["changed"]
    elif ends == "timer":
        assert command(["expire", "dead-man"], host) == 0
    elif ends == "reboot":
        host.reboot(NEXT_BOOT)
        assert command(["reapply"], host) == 0
    else:
        assert not call(restore.main, host).get("failed")
    wanted = {"confirmed": "hpet", "restored": None}.get(ends, "tsc")
    assert (source_wanted(host), traces(host)) == (wanted, [])
    if ends != "reboot":
        assert current(host) == (wanted or "xen")


@pytest.mark.parametrize("without", [(), ("unfelt", "untested")], ids=["the version before", "0.2.0"])
@pytest.mark.parametrize("ends", ["back", "timer", "restored", "one restored", "goes on"])
def test_what_is_switched(tmp_path: Path, call: Call, ends: str, without: Sequence[str]) -> None:
    host = FakeKernel(tmp_path, files_of("xen_hvm"))
    before = files(host)
    call(tune.main, host, concerns={"memory": {"swappiness": 5}})
    as_tuned, steps = files(host), Steps(call, host)
    steps("begin", tune=SWITCHING)
    steps("measure", tune=SWITCHING, state="tuned")
    armed_by_older(host, SWITCHED, without)
    if ends == "back":
        assert steps("back")["answer"] == {"ended": True}
    elif ends == "timer":
        assert command(["expire", "prove"], host) == 0
    elif ends == "goes on":
        assert steps("measure", tune=SWITCHING, state="untuned")["answer"]["taken_back"] == []
        assert steps("back")["answer"] == {"ended": True}
    else:
        assert not call(restore.main, host, **({"concerns": ["clocksource"]} if "one" in ends else {})).get("failed")
    assert (current(host), swappiness(host)) == ("xen", "60" if ends == "restored" else "5")
    assert files(host) == (before if ends == "restored" else as_tuned)


@pytest.mark.parametrize("ends", ["back", "timer", "restored", "goes on"])
def test_what_is_rebooted(tmp_path: Path, call: Call, ends: str) -> None:
    host = rebooting(tmp_path)
    before, steps = files(host), RebootSteps(call, host)
    steps("begin")
    steps("switch", state="tuned")
    armed_by_older(host, REBOOTED)
    host.boot_again()
    if ends == "back":
        assert steps("back")["answer"] == {"ended": True, "reboot": True}
        host.boot_again()
        assert steps("back")["answer"] == {"ended": True, "reboot": False}
    elif ends == "timer":
        assert command(["expire", "prove"], host) == command(["expire", "prove"], host) == 0
    elif ends == "goes on":
        assert steps("measure", state="tuned")["answer"]["taken_back"] == []
        assert steps("keep")["answer"]["kept"]
        assert not host.waits
    if ends in ("restored", "goes on"):
        assert not call(restore.main, host).get("failed")
        host.boot_again()
    assert files(host) == before


@pytest.mark.parametrize("kind", [CHANGE, SWITCHED, REBOOTED], ids=FILES.values())
def test_a_file_is_written_as_it_was_read(tmp_path: Path, kind: Kind) -> None:
    """The older agent, which the timer of an older version starts, reads what this version wrote."""
    host = FakeKernel(tmp_path, files_of("xen_hvm"))
    content = json.loads((OLDER / f"{FILES[kind.path]}.json").read_text())
    place = tmp_path / kind.path[1:]
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    place.write_text(json.dumps(content))
    lease = read(host, kind)
    assert lease is not None
    write(host, lease)
    assert json.loads(place.read_text()) == content
