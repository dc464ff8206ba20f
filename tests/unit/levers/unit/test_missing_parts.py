# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit is removed although somebody, or a run that failed, removed a part of it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Callable, Dict, Sequence

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.modules import restore, tune

from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of

TIMER = "etc/systemd/system/nearmetal.timer"
LINK = "etc/systemd/system/timers.target.wants/nearmetal.timer"


class Forgetful(FakeKernel):
    """Its systemd answers for a timer whose file is gone as systemctl(1) says."""

    state = "inactive"

    def command(self, argv: Sequence[str], timeout: float = 60) -> str:
        answer = super().command(argv, timeout)
        if argv == ("systemctl", "stop", "nearmetal.timer") and not (Path(self.root) / TIMER).exists():
            raise NearmetalError("systemctl stop nearmetal.timer failed with code 5: Unit nearmetal.timer not loaded.")
        if argv == ("systemctl", "show", "--property=ActiveState", "nearmetal.timer"):
            return f"ActiveState={self.state}\n"
        return answer


@pytest.fixture
def host(tmp_path: Path, call: Callable[..., Dict[str, Any]]) -> Forgetful:
    host = Forgetful(tmp_path, files_of("xen_hvm"))
    call(tune.main, host, concerns={"clocksource": {"source": "auto"}})
    (tmp_path / TIMER).unlink()
    return host


def test_a_timer_without_its_file_is_no_obstacle(host: Forgetful, call: Callable[..., Dict[str, Any]]) -> None:
    restored = call(restore.main, host)
    assert not restored.get("failed"), restored["msg"]
    assert not (Path(host.root) / LINK).is_symlink()
    assert not (Path(host.root) / "var/lib/nearmetal").exists()


def test_a_timer_that_runs_on_is_a_failure(host: Forgetful, call: Callable[..., Dict[str, Any]]) -> None:
    host.state = "active"
    assert "systemctl stop nearmetal.timer failed with code 5" in call(restore.main, host)["msg"]
    assert (Path(host.root) / LINK).is_symlink()


def test_what_is_left_without_the_agent_is_removed_and_not_renewed(
    host: Forgetful, call: Callable[..., Dict[str, Any]]
) -> None:
    shutil.rmtree(Path(host.root) / "usr/local/lib/nearmetal")
    checked = call(restore.main, host, check=True)
    assert checked["msg"].endswith("unit: would be removed (the agent was already gone)")
    assert call(restore.main, host)["msg"].endswith("unit: removed (the agent was already gone)")
    assert not (Path(host.root) / LINK).is_symlink()
