# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A capture of a host outside EC2: planned on request, else refused in one sentence; and described in words."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command

from tests.support.fresh_host import fresh


@pytest.fixture
def captured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert command(["capture"], fresh(tmp_path / "root", "not_ec2")) == 0
    file = tmp_path / "host.json"
    file.write_text(capsys.readouterr().out)
    return str(file)


def test_a_host_outside_ec2_is_refused_in_one_sentence(captured: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["plan", "--from", captured, "--workload", "web"]) == 0
    said = capsys.readouterr().out
    assert said.count("tunes it anyway") == 1
    assert "--allow-not-ec2" in said
    assert "clocksource.source, hugepages.thp, " in said, "the settings that share the reason share the line"


def test_a_host_outside_ec2_is_planned_on_request(captured: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["plan", "--from", captured, "--workload", "web", "--allow-not-ec2"]) == 0
    said = capsys.readouterr().out
    assert "would change    clocksource.source  hpet → tsc" in said
    assert "anyway" not in said
    assert "Nitro" not in said, "which is nothing that such a host could be"
    assert "add `server 169.254.169.123" not in said


def test_the_option_without_a_capture_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["plan", "--allow-not-ec2"], fresh(tmp_path / "root", "nitro")) == 1
    assert capsys.readouterr().err.endswith("--allow-not-ec2 plans a captured host: name its file with --from\n")


def test_a_terminal_gets_words_and_a_file_the_picture(
    captured: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["topology", "--from", captured]) == 0
    assert capsys.readouterr().out.startswith("<svg")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert command(["topology", "--from", captured, "--workload", "web"]) in (0, 1)
    said = capsys.readouterr().out
    assert said.startswith("Topology of a host of class not_ec2")
    assert "\nnow:\n  NUMA node 0, 8 GiB, CPUs 0-7\n" in said
    assert "\nafter web:\n" in said
    assert "<svg" not in said
