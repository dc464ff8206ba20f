# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way back of a fleet of which hosts are dead, can't be restored, or are cut off while they are restored."""

from __future__ import annotations

from typing import Any, Dict

import pytest

from tests.support.fleet import GOOD_CLOCK, Fleet, result_with
from tests.support.report.judged import states

GOOD: Dict[str, Any] = {"module_result": result_with(GOOD_CLOCK)}
DEAD = {"fate": "unreachable", "ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}
STUCK = {"module_result": result_with(GOOD_CLOCK, errors={"clocksource": "its file was edited"}), "fate": "fails"}


def restored(fleet: Fleet, hosts: Dict[str, Any], *more: str, callback: str = "nearmetal.ec2.fleet") -> Any:
    """A run of restore over these hosts, one after the other."""
    fleet.inventory(hosts)
    done = fleet.run("-e", "tune_serial=1", *more, playbook="nearmetal.ec2.restore", callback=callback)
    assert "Traceback" not in done.stdout + done.stderr
    return done


@pytest.mark.parametrize(("wrong", "state", "code"), [(DEAD, "unreachable", 4), (STUCK, "failed", 2)])
@pytest.mark.parametrize("callback", ["nearmetal.ec2.fleet", "default"])
def test_the_way_back_goes_on_past_a_host_that_stays_as_it_is(
    fleet: Fleet, wrong: Dict[str, Any], state: str, code: int, callback: str
) -> None:
    done = restored(fleet, {"h1": wrong, "h2": GOOD, "h3": GOOD}, callback=callback)
    assert done.returncode == code, done.stdout
    if callback == "default":
        assert done.stdout.count("ok: [h3]") > 1
        return
    assert states(fleet.report()) == {"h1": state, "h2": "reported", "h3": "reported"}
    said = " ".join(done.stdout.split())
    command = "ansible-playbook nearmetal.ec2.restore -i hosts.json -e tune_serial=1 --limit h1"
    assert f"Next: h1 is left to restore {command} " in said


def test_the_command_that_finishes_restores_the_rest(fleet: Fleet) -> None:
    restored(fleet, {f"h{number}": DEAD if number < 5 else GOOD for number in range(6)})
    names = next(fleet.reports.glob("hosts-*.txt"))
    done = restored(fleet, {f"h{number}": GOOD for number in range(6)}, "--limit", f"@{names}")
    assert done.returncode == 0, done.stdout
    assert set(states(fleet.report())) == {f"h{number}" for number in range(5)}
    assert "Next" not in done.stdout


def test_a_host_that_is_cut_off_by_the_way_back_stops_it(fleet: Fleet) -> None:
    done = restored(fleet, {"h1": {**GOOD, "fate": "unreachable"}, "h2": GOOD})
    assert done.returncode == 2, done.stdout
    assert "h1: it answered, and was lost while it was restored: look" in done.stdout
    assert states(fleet.report())["h2"] == "silent"
