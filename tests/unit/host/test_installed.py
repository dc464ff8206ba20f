# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent's file, replaced by something else: what belongs to it goes, and what is foreign is named."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.modules import clocksource, restore

from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of
from tests.unit.levers.unit.test_unit import AGENT, files

Call = Callable[..., Dict[str, Any]]


def removed(place: Path) -> None:
    place.unlink()


def replaced(place: Path) -> None:
    place.write_text("#!/bin/sh\n")


def a_folder(place: Path) -> None:
    place.unlink()
    place.mkdir()


def a_pipe(place: Path) -> None:
    place.unlink()
    os.mkfifo(place)


@pytest.mark.parametrize("change", [removed, replaced, a_folder, a_pipe])
def test_what_is_compiled_of_the_agent_goes_with_it_whatever_has_its_name(
    tmp_path: Path, call: Call, change: Callable[[Path], None]
) -> None:
    host = FakeKernel(tmp_path, files_of("xen_hvm"))
    before, agent = files(host), tmp_path / AGENT
    call(clocksource.main, host, source="auto")
    change(agent)
    back = call(restore.main, host)
    if change is not removed:
        assert back["errors"]["unit"] == f"/{AGENT} exists and nearmetal didn't write it: move it away and run again"
        assert agent.exists()
        agent.rmdir() if agent.is_dir() else agent.unlink()
        back = call(restore.main, host)
    assert not back.get("failed"), back["msg"]
    assert files(host) == before
    assert not agent.parent.exists()
