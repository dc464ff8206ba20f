# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The output of a suite is shown as it comes, and a suite that hangs ends with where it was."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dev.running.output import descendants, follow
from lab.process import start_ticks, wait_until

HANGS = """
import faulthandler, subprocess
faulthandler.enable()
def wait_for_nothing(): child.wait()
child = subprocess.Popen(["sleep", "1000"])
print(child.pid, flush=True)
wait_for_nothing()
"""


def started(*argv: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def test_lines_are_logged_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for show in (True, False):
        process = started("printf", "one\ntwo\\377\nthree")
        assert follow(process, tmp_path / "log", show) == "one\ntwo\ufffd\nthree"
        assert process.wait() == 0
        assert capsys.readouterr().out == "    one\n    two\ufffd\n    three\n" * show
        assert (tmp_path / "log").read_bytes() == b"one\ntwo\xff\nthree"


def test_what_hangs_is_ended_with_all_that_it_started_and_says_where_it_was(tmp_path: Path) -> None:
    process = started(sys.executable, "-c", HANGS)
    said = follow(process, tmp_path / "log", show=False, silent=2.0)
    assert process.wait() != 0
    assert "It printed nothing for 2 s and was ended." in said
    assert "in wait_for_nothing" in said
    assert wait_until(lambda: start_ticks(int(said.split()[0])) is None, 60.0)


def test_processes_that_end_while_they_are_looked_for_are_left_out() -> None:
    process = started("sh", "-c", "while :; do sh -c 'true & true & wait' & sh -c 'true & wait' & wait; done")
    try:
        assert sum(len(descendants(process.pid)) for _time in range(3000)) > 0
    finally:
        process.kill()
        process.communicate()
