# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command of docs/audit.md that shows what a run would do as shell commands, on a simulated host."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Dict, List, Tuple

import pytest

from tests.support.report import shown
from tests.support.simulated import simulate

PROJECT = Path(__file__).resolve().parents[4]
PAGE = (PROJECT / "docs/audit.md").read_text("utf-8").partition("\n## The commands that would do the same\n")[2]
# What the commands that the page shows follow from.
WANTED = {"clocksource": {"source": "auto", "persist": False}, "network_stack": {"somaxconn": 8192}}


def block(language: str) -> List[str]:
    """The lines of the page's first code block of that language."""
    return PAGE.partition(f"\n```{language}\n")[2].partition("```")[0].splitlines()


def snapshot(root: Path) -> Dict[str, Tuple[int, bytes]]:
    """Every file, with its mode."""
    files = [path for path in root.rglob("*") if path.is_file()]
    return {str(path.relative_to(root)): (path.stat().st_mode, path.read_bytes()) for path in files}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with the inventory that the page names."""
    variables = simulate(tmp_path / "redis-1", "xen_hvm")
    words = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
    (tmp_path / "hosts.ini").write_text(f"redis-1 {words}\n")
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars/all.json").write_text(json.dumps({"tune_concerns": WANTED}))
    return tmp_path


def test_the_commands_are_printed_and_the_host_stays_as_it_is(place: Path) -> None:
    root = place / "redis-1/root"
    before = snapshot(root)
    (command,) = block("sh")
    done = shown.run(place, *shlex.split(command))
    assert done.returncode == 0, done.stdout + done.stderr
    lines = ["# On redis-1", *block("text")]
    printed = done.stdout.splitlines()
    start = printed.index(lines[0])
    assert printed[start : start + len(lines)] == lines
    assert "".join(f"    {line}\n" for line in lines[1:]) in (place / "nearmetal-report/report.md").read_text()
    assert snapshot(root) == before


def test_without_check_mode_nothing_is_shown_or_changed(place: Path) -> None:
    root = place / "redis-1/root"
    before = snapshot(root)
    (command,) = block("sh")
    done = shown.run(place, *(word for word in shlex.split(command) if word != "--check"))
    assert done.returncode == 2, done.stdout + done.stderr
    assert "run with --check" in " ".join(done.stdout.split())
    assert snapshot(root) == before
