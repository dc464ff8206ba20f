# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A comparison across reboots where systemctl can't wait for the end of the boot: from systemd 240 on it can."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError

from tests.support.prove.experiments import Call
from tests.support.prove.reboots import rebooting
from tests.unit.prove.host.test_reboots import RebootSteps


def test_nothing_is_measured_before_the_boot_is_over(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = rebooting(tmp_path)
    library = tmp_path / "usr/lib/systemd/libsystemd-shared-252.so"
    library.rename(library.with_name("libsystemd-shared-237.so"))
    said = ["initializing", "starting", "degraded"]

    def asked() -> None:
        raise NearmetalError(f"systemctl is-system-running failed with code 1: {said.pop(0)}")

    host.meanwhile["systemctl is-system-running"] = asked
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    steps = RebootSteps(call, host)
    steps("begin")
    assert not steps.boot_into("tuned").get("failed")
    assert said == []
