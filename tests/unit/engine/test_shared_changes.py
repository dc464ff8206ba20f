# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two concerns that ask for kernel arguments in one run: one write, both, one of them, or neither."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Dict, List, Optional, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.planning import Tune
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.requests import restore_requests
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.run import Conditions, Run, run
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Plan, Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.boot_argument import plan_argument
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.concern import Concern
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.knob import boot_argument

from tests.support.boot_trees import BootHost, debian

CLOCK = "/sys/devices/system/clocksource/clocksource0/current_clocksource"


def concern(name: str, argument: str, source: Optional[str] = None, after: Tuple[str, ...] = ()) -> Concern:
    """A concern that wants one kernel argument and, with `source`, a clock source beside it."""

    def plan(facts: Facts, wanted: Wanted) -> Plan:
        knob = boot_argument(name, "value", argument.split("=")[0], "none")
        argument_plan = plan_argument(facts, wanted, knob, argument, "a test")
        if source is None or facts.clock is None or facts.clock.current == source:
            return argument_plan
        switch = Action(name, "value", "clock.current", facts.clock.current, source, "a test", "none")
        return Plan((*argument_plan.actions, switch), argument_plan.findings)

    return Concern(name, {"value": {"type": "str"}}, ("platform", "boot", "clock"), plan, after)


def asked(host: BootHost, *concerns: Concern, roll_back_all: bool = False) -> Run:
    requests = [Tune(concern_of_test.name, concern_of_test, Wanted({"value": "x"})) for concern_of_test in concerns]
    return run(host, lambda _known: requests, conditions=Conditions(roll_back_all=roll_back_all))


def nearmetal_arguments(host: BootHost) -> List[str]:
    """The arguments on the next boot's command line that the image didn't bring."""
    line = re.search(r"^\tlinux\t.*\+p\"(.*)$", (Path(host.root) / "boot/grub/grub.cfg").read_text(), re.MULTILINE)
    assert line is not None
    return line.group(1).split()


def generated(host: BootHost) -> int:
    return sum(line == "/usr/sbin/grub-mkconfig" for line in host.commands)


def errors(done: Run) -> Dict[str, str]:
    return {outcome.name: outcome.error for outcome in done.outcomes if outcome.error}


def test_two_concerns_one_write(tmp_path: Path) -> None:
    host = debian(tmp_path)
    done = asked(host, concern("one", "numa_balancing=disable"), concern("two", "hugepagesz=1G hugepages=4"))
    assert errors(done) == {}
    assert nearmetal_arguments(host) == ["hugepagesz=1G", "hugepages=4", "numa_balancing=disable"]
    assert generated(host) == 1


def test_two_concerns_disagree(tmp_path: Path) -> None:
    host = debian(tmp_path)
    with pytest.raises(
        NearmetalError, match=r"one\.value wants .* numa_balancing=1 and two\.value wants numa_balancing=0"
    ):
        asked(host, concern("one", "numa_balancing=1"), concern("two", "numa_balancing=0"))
    assert nearmetal_arguments(host) == []
    assert generated(host) == 0


def test_a_concern_disagrees_with_an_argument_of_an_earlier_run(tmp_path: Path) -> None:
    host = debian(tmp_path)
    asked(host, concern("one", "numa_balancing=1"))
    with pytest.raises(NearmetalError, match=r"one\.value .* two\.value"):
        asked(host, concern("two", "numa_balancing=0"))
    assert nearmetal_arguments(host) == ["numa_balancing=1"]


def test_a_concern_fails_later_and_the_other_keeps_its_argument(tmp_path: Path) -> None:
    host = debian(tmp_path)
    host.moods[CLOCK] = "EIO"
    done = asked(host, concern("one", "nosmt", source="hpet"), concern("two", "quiet_boot=1"))
    assert list(errors(done)) == ["one"]
    assert nearmetal_arguments(host) == ["quiet_boot=1"]
    host.moods.clear()
    assert errors(asked(host, concern("one", "nosmt", source="hpet"))) == {}
    assert nearmetal_arguments(host) == ["nosmt", "quiet_boot=1"]


def test_a_concern_that_needs_a_failed_one_loses_its_argument_too(tmp_path: Path) -> None:
    host = debian(tmp_path)
    host.moods[CLOCK] = "EIO"
    done = asked(host, concern("one", "nosmt", source="hpet"), concern("two", "quiet_boot=1", after=("one",)))
    assert list(errors(done)) == ["one", "two"]
    assert nearmetal_arguments(host) == []


def test_the_write_fails_and_both_are_named(tmp_path: Path) -> None:
    host = debian(tmp_path)
    (tmp_path / "usr/sbin/grub-script-check").write_text("#!/bin/sh\nexit 1\n")
    done = asked(
        host, concern("one", "nosmt", source="hpet"), concern("two", "quiet_boot=1"), concern("three", "quiet")
    )
    assert sorted(errors(done)) == ["one", "three", "two"]
    assert nearmetal_arguments(host) == []
    assert (tmp_path / CLOCK[1:]).read_text() == "tsc\n"


def test_a_whole_run_is_taken_back(tmp_path: Path) -> None:
    host = debian(tmp_path)
    host.moods[CLOCK] = "EIO"
    asked(host, concern("two", "quiet_boot=1"), concern("one", "nosmt", source="hpet"), roll_back_all=True)
    assert nearmetal_arguments(host) == []
    assert not (tmp_path / "var/lib/nearmetal").exists()


@pytest.mark.parametrize("roll_back_all", [False, True])
def test_what_could_not_be_taken_back_is_not_forgotten(
    tmp_path: Path, roll_back_all: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = debian(tmp_path)
    check = tmp_path / "usr/sbin/grub-script-check"
    good = check.read_text()

    def fail(path: str, text: str) -> None:
        check.write_text("#!/bin/sh\nexit 1\n")
        raise OSError(5, "Input/output error", path)

    with monkeypatch.context() as patched:
        patched.setattr(host, "write_value", fail)
        done = asked(host, concern("one", "nosmt", source="hpet"), roll_back_all=roll_back_all)
    assert "the journal keeps the originals" in errors(done)["one"]
    assert nearmetal_arguments(host) == ["nosmt"]
    check.write_text(good)
    restored = run(host, lambda known: restore_requests(None, known))
    assert errors(restored) == {}
    assert nearmetal_arguments(host) == []
    assert not (tmp_path / "var/lib/nearmetal").exists()
