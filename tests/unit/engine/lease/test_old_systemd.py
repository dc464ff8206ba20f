# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The dead-man timer on each systemd, which keeps a service that failed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict, Sequence

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.lease.record import CHANGE
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.modules import confirm

from tests.support.hosts import files_of
from tests.support.kernel import systemd
from tests.unit.engine.lease.test_confirmation import CURRENT, current, cutting
from tests.unit.engine.lease.test_faults import Systemd, traces, tuned

__all__ = ["cutting"]

Call = Callable[..., Dict[str, Any]]
SERVICE = f"nearmetal-{CHANGE.timer.name}.service"


class KeepsFailures(Systemd):
    """Its service stays when it has failed."""

    failed = False

    def command(self, argv: Sequence[str], timeout: float = 60) -> str:
        answer = super().command(argv, timeout)
        if argv == ("systemctl", "reset-failed", SERVICE):
            if not self.failed:
                raise NearmetalError(f"systemctl reset-failed {SERVICE} failed with code 1: Unit {SERVICE} not loaded.")
            self.failed = False
        if argv == ("systemctl", "show", "--property=ActiveState", SERVICE):
            return f"ActiveState={'failed' if self.failed else 'inactive'}\n"
        return answer

    def fire(self) -> int:
        """The timer starts its service. Returns how that ended."""
        ended = command(["expire", "dead-man"], self)
        self.failed = ended != 0
        return ended


@pytest.mark.usefixtures("cutting")
@pytest.mark.parametrize("number", systemd.VERSIONS)
@pytest.mark.parametrize("ends", ["confirmed", "put back", "left by a run that was killed"])
def test_a_change_is_guarded_again_after_a_service_that_failed(
    tmp_path: Path, call: Call, number: int, ends: str
) -> None:
    host = KeepsFailures(tmp_path, files_of("xen_hvm", systemd.changes(number)))
    assert tuned(call, host, "tsc")["confirm_within"] == 90
    host.moods[CURRENT] = "EIO"
    assert host.fire() == 1
    host.moods.clear()
    if ends == "put back":
        assert host.fire() == 0
    elif ends == "confirmed":
        (tmp_path / CHANGE.fired[1:]).unlink()
        assert call(confirm.main, host)["changed"]
    else:
        (tmp_path / CHANGE.path[1:]).unlink()
    again = tuned(call, host, "hpet")
    assert (again["confirm_within"], host.timer) == (90, True), again["msg"]
    assert call(confirm.main, host)["changed"]
    assert (current(host), traces(host), host.failed) == ("hpet", [], False)
