# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.nearmetal.ec2.plugins.action import prove as action
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.host import load_sample

from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of
from tests.support.prove.plays import Call, Play


@pytest.fixture
def host(tmp_path: Path) -> FakeKernel:
    return FakeKernel(tmp_path / "host", files_of("xen_hvm"))


@pytest.fixture
def play(call: Call, host: FakeKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
    monkeypatch.setattr(action.ActionModule, "report_directory", lambda _action: str(tmp_path / "report"))
    # Other load of this machine must not affect a test, so the controller's CPU counters stay at zero.
    monkeypatch.setattr(load_sample, "ticks", lambda _host: {})
    return Play(call, host)
