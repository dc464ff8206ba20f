# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A tool is run to its end, or to the end of our patience; nothing of it is left behind."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.spawn import to_end

ENVIRONMENT: Dict[str, str] = {"PATH": "/usr/bin:/bin", "WORD": "given"}


def shell(script: str, timeout: float = 60) -> "tuple[int, bytes, bytes]":
    return to_end(["sh", "-c", script], ENVIRONMENT, timeout)


def test_code_output_and_errors() -> None:
    assert shell('echo "$WORD"; echo wrong >&2; exit 3') == (3, b"given\n", b"wrong\n")


def test_it_reads_nothing_from_us_and_has_no_other_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKED", "yes")
    code, out, _err = shell("cat; env | grep -c LEAKED")
    assert (code, out) == (1, b"0\n")


def test_more_than_a_pipe_holds_on_both() -> None:
    million = "head -c 1000000 /dev/zero"
    code, out, err = shell(f"{million}; {million} >&2")
    assert (code, len(out), len(err)) == (0, 1_000_000, 1_000_000)


def test_one_that_a_signal_ends() -> None:
    assert shell("kill -TERM $$")[0] == -signal.SIGTERM


def test_a_closed_reader_ends_a_writer_as_in_any_shell() -> None:
    assert shell("yes | head -n 1")[:2] == (0, b"y\n")


@pytest.mark.parametrize("quiet", ["", "exec >&- 2>&-;"])
def test_patience_ends(tmp_path: Path, quiet: str) -> None:
    with pytest.raises(TimeoutError):
        shell(f"echo $$ > {tmp_path}/pid; {quiet} exec sleep 60", timeout=0.5)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize("program", ["no-such-tool", "/no/such/tool"])
def test_a_missing_tool(program: str) -> None:
    with pytest.raises(FileNotFoundError):
        to_end([program], ENVIRONMENT, 60)


def test_a_tool_is_not_looked_for_where_we_happen_to_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stray").write_text("#!/bin/sh\n")
    (tmp_path / "stray").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError):
        to_end(["stray"], ENVIRONMENT, 60)


def test_no_descriptor_is_left_open() -> None:
    before = os.listdir("/proc/self/fd")
    shell("true")
    with pytest.raises(FileNotFoundError):
        to_end(["no-such-tool"], ENVIRONMENT, 60)
    assert os.listdir("/proc/self/fd") == before
