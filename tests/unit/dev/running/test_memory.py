# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Temporary files are kept in memory where there is room, whoever starts the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Dict

import pytest

from dev import ROOT, suites
from dev.running import memory


@pytest.mark.parametrize(
    ("room", "chosen"),
    [
        ({}, True),
        ({"f_bavail": 1}, False),
        ({"f_favail": 1000}, False),
        ({"f_flag": os.ST_NOEXEC}, False),
    ],
    ids=["roomy", "few bytes", "few files", "no programs"],
)
def test_there_must_be_room_for_their_bytes_and_their_number(
    room: Dict[str, int], chosen: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = {"f_bavail": 1 << 22, "f_frsize": 4096, "f_favail": 3_000_000, "f_flag": 0}
    monkeypatch.setattr(memory, "FOLDER", str(tmp_path))
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(**{**usual, **room}))
    assert {job.environment.get("TMPDIR") == str(tmp_path) for job in suites.controller()} == {chosen}


@pytest.mark.parametrize("named", [False, True], ids=["by itself", "by TMPDIR"])
def test_pytest_alone_keeps_them_there_too(named: bool, tmp_path: Path) -> None:
    """The folder of a test is where the rule says, or where TMPDIR does."""
    (tmp_path / "test_place.py").write_text("def test(tmp_path): print(f'place={tmp_path}')")
    environment = {name: value for name, value in os.environ.items() if name != "TMPDIR"}
    if named:
        environment["TMPDIR"] = str(tmp_path)
    words = [sys.executable, "-m", "pytest", "-qs", "-p", "no:cacheprovider", "-p", "tests.unit.conftest"]
    done = subprocess.run(
        [*words, "-c", str(ROOT / "pyproject.toml"), str(tmp_path / "test_place.py")],
        cwd=ROOT,
        env={**environment, "PYTHONPATH": str(ROOT / ".ansible/collections")},
        capture_output=True,
        text=True,
        check=False,
    )
    expected = str(tmp_path) if named else memory.variables().get("TMPDIR", "/tmp")
    assert f"place={expected}/pytest-of-" in done.stdout, done.stdout + done.stderr
