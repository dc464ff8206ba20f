# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests that run in a fork end with the process that started them."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

from dev import ROOT

# Says through the pipe that it runs; the tool that it starts holds the pipe open as long as it lives.
_ENDLESS = """
import os, signal, subprocess

signal.alarm(20)  # where nothing else ends it

def test_without_end():
    pipe = {pipe}
    os.set_inheritable(pipe, True)
    subprocess.Popen(["sleep", "20"], close_fds=False)
    os.write(pipe, b"runs")
    while True:
        pass
"""
_PROFILE = "from hypothesis import settings\nsettings.register_profile('caught')\n"
_STARTS = """
import os, pathlib
from dev.running import forked
forked.start(pathlib.Path({folder!r}), ["test_endless.py"], pathlib.Path({folder!r}), {{}})
os.close({pipe})
os.wait()
"""


def test_a_test_without_end_and_its_tools_end_when_the_run_is_killed(tmp_path: Path) -> None:
    end, pipe = os.pipe()
    (tmp_path / "test_endless.py").write_text(_ENDLESS.format(pipe=pipe))
    (tmp_path / "conftest.py").write_text(_PROFILE)
    program = _STARTS.format(folder=str(tmp_path), pipe=pipe)
    run = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, pass_fds=[pipe])
    os.close(pipe)
    try:
        assert os.read(end, 4) == b"runs", (tmp_path / "output").read_text()
    finally:
        run.kill()
        run.wait()
    ended, _none, _none = select.select([end], [], [], 15)
    assert ended, "somebody still holds the pipe"
    assert os.read(end, 1) == b""
    os.close(end)
