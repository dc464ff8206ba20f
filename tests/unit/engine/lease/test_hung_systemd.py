# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A systemd whose tools never end: a run waits for it once or twice, and changes nothing that may cut the host off."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict, Sequence, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.lease.record import CHANGE
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import Unanswered
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.agent_timer import ANSWERS_WITHIN
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import TOOL_SECONDS
from ansible_collections.nearmetal.ec2.plugins.modules import confirm, restore

from tests.support.hosts import files_of
from tests.support.prove.experiments import Steps, files
from tests.support.prove.reboots import TUNING, RebootingHost, rebooting
from tests.unit.engine.lease.test_confirmation import current, cutting
from tests.unit.engine.lease.test_faults import Systemd, source_wanted, traces, tuned

__all__ = ["cutting"]

Call = Callable[..., Dict[str, Any]]
EVERYTHING = ("systemctl",)


class Hung(Systemd):
    """What it is asked with one of the `hung` words has no end."""

    hung: Tuple[str, ...] = ()
    waited = 0.0  # seconds

    def command(self, argv: Sequence[str], timeout: float = TOOL_SECONDS) -> str:
        if set(argv).intersection(self.hung):
            self.waited += timeout
            raise Unanswered(f"{' '.join(argv[:3])} did not end within {timeout:.0f} s")
        return super().command(argv, timeout)


@pytest.fixture
def host(tmp_path: Path) -> Hung:
    return Hung(tmp_path, files_of("xen_hvm"))


@pytest.mark.usefixtures("cutting")
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("hung", [EVERYTHING, ("daemon-reload",), ("restart",), ("show",)])
def test_nothing_is_changed_when_no_timer_can_be_armed(
    host: Hung, call: Call, hung: Tuple[str, ...], left: bool
) -> None:
    tuned(call, host, "tsc")
    assert call(confirm.main, host)["changed"]
    host.timer, host.hung = left, hung  # a run that was killed may have left a timer
    failed = tuned(call, host, "hpet")
    assert failed["failed"]
    assert "no dead-man timer could be armed, so nothing was changed: system" in failed["msg"]
    assert "did not end within 200 s" in failed["msg"]
    assert "confirm_within" not in failed
    assert host.waited <= 2 * ANSWERS_WITHIN
    host.hung = ()
    assert (current(host), source_wanted(host)) == ("tsc", "tsc")
    assert tuned(call, host, "hpet")["confirm_within"] == 90, "nothing of it is in the way"
    assert call(confirm.main, host)["changed"]
    assert traces(host) == []


@pytest.mark.usefixtures("cutting")
def test_a_confirmation_counts_after_one_wait(host: Hung, call: Call) -> None:
    tuned(call, host, "tsc")
    host.hung = EVERYTHING
    assert call(confirm.main, host)["changed"]
    assert (current(host), host.waited) == ("tsc", ANSWERS_WITHIN)
    host.hung = ()
    assert command(["expire", "dead-man"], host) == 0
    assert (current(host), traces(host)) == ("tsc", [])


@pytest.mark.usefixtures("cutting")
def test_the_earlier_value_is_back_before_systemd_is_asked(host: Hung, call: Call) -> None:
    tuned(call, host, "tsc")
    host.hung = EVERYTHING
    assert command(["expire", "dead-man"], host) == 0
    assert (current(host), source_wanted(host), host.waited) == ("xen", None, ANSWERS_WITHIN)
    assert traces(host) == [CHANGE.timer.agent, "timer"]


@pytest.mark.usefixtures("cutting")
def test_a_restore_waits_once(host: Hung, call: Call) -> None:
    tuned(call, host, "tsc")
    host.hung = EVERYTHING
    assert call(restore.main, host)["changed"]
    assert (current(host), host.waited) == ("xen", ANSWERS_WITHIN)


@pytest.mark.usefixtures("cutting")
def test_a_start_of_the_unit_that_hangs_keeps_the_timer_from_the_lock_for_one_wait(host: Hung, call: Call) -> None:
    host.hung = ("start",)
    failed = tuned(call, host, "auto")
    assert "unit: systemctl start nearmetal.timer did not end within 200 s" in failed["msg"]
    assert (host.waited, failed["confirm_within"]) == (ANSWERS_WITHIN, 90)
    assert command(["expire", "dead-man"], host) == 0
    assert current(host) == "xen"


@pytest.mark.parametrize(("hung", "waits"), [(EVERYTHING, 2), (("restart",), 1)])
def test_prove_begins_nothing(host: Hung, call: Call, hung: Tuple[str, ...], waits: int) -> None:
    before = files(host)
    host.hung = hung
    failed = Steps(call, host)("begin")
    assert "no timer could be armed, so nothing was changed: systemctl " in failed["msg"]
    assert (files(host), current(host), host.waited) == (before, "xen", waits * ANSWERS_WITHIN)


def test_prove_across_reboots_begins_nothing(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    waited = []

    def hung(_host: RebootingHost, argv: Sequence[str], timeout: float = TOOL_SECONDS) -> str:
        waited.append(timeout)
        raise Unanswered(f"{' '.join(argv[:3])} did not end within {timeout:.0f} s")

    host = rebooting(tmp_path)
    before = files(host)
    with monkeypatch.context() as patch:
        patch.setattr(RebootingHost, "command", hung)
        failed = Steps(call, host)("begin", tune=TUNING, reboot=True)
    assert "no timer could be armed, so nothing was changed: systemctl daemon-reload did not end" in failed["msg"]
    assert files(host) == before
    assert waited == [ANSWERS_WITHIN, ANSWERS_WITHIN]
