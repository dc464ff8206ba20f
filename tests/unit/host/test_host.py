# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A tool of the distribution runs to its end or its timeout; none of its processes is left behind."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import TOOL_SECONDS, WritableHost

HOST = WritableHost()


def shell(script: str, timeout: float = 60) -> bytes:
    return HOST.output(["sh", "-c", script], timeout)


def test_its_output_in_a_locale_that_we_understand() -> None:
    assert shell('echo "$LC_ALL"') == b"C\n"


def test_a_failure_is_reported_with_its_code_and_last_output() -> None:
    with pytest.raises(NearmetalError, match=r"^sh -c .* failed with code 3: wrong$"):
        shell("echo first >&2; echo wrong >&2; exit 3")


def test_a_masked_unit_is_reported_with_what_to_do() -> None:
    with pytest.raises(NearmetalError, match=r"is masked\. Run `systemctl unmask irqbalance\.service`, and run again$"):
        shell("echo 'Failed to restart irqbalance.service: Unit irqbalance.service is masked.' >&2; exit 1")


def test_it_reads_nothing_from_us_and_has_no_other_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKED", "yes")
    assert shell("cat; env | grep -c LEAKED || true") == b"0\n"


def test_more_than_a_pipe_holds_on_both() -> None:
    million = "head -c 1000000 /dev/zero"
    assert len(shell(f"{million} >&2; {million}")) == 1_000_000


def test_a_program_that_a_signal_ends() -> None:
    with pytest.raises(NearmetalError, match=r"failed with code -15: no message$"):
        shell("kill -TERM $$")


def test_a_closed_pipe_ends_its_writer_as_in_any_shell() -> None:
    assert shell("yes | head -n 1") == b"y\n"


@pytest.mark.parametrize("quiet", ["", "exec >&- 2>&-;"])
def test_a_tool_that_exceeds_its_timeout_is_killed(tmp_path: Path, quiet: str) -> None:
    with pytest.raises(NearmetalError, match=r"did not end within 0 s$"):
        shell(f"echo $$ > {tmp_path}/pid; {quiet} exec sleep 60", timeout=0.5)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_the_time_for_which_a_run_was_stopped_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]

    def now() -> float:
        """SIGSTOP between the first and the second look at the clock, and SIGCONT 700 s later."""
        clock.append(time.monotonic() + (700 if len(clock) > 1 else 0))
        return clock[-1]

    monkeypatch.setattr(subprocess, "_time", now)
    assert shell("echo done", timeout=600) == b"done\n"


def test_a_tool_on_a_starved_host_may_use_its_full_timeout() -> None:
    systemctl_reloads_within = 2 * 90
    assert systemctl_reloads_within < TOOL_SECONDS


@pytest.mark.parametrize("program", ["no-such-tool", "/no/such/tool"])
def test_a_missing_tool(program: str) -> None:
    with pytest.raises(NearmetalError, match=f"^{program}: No such file or directory$"):
        HOST.output([program])


def test_a_tool_is_not_searched_in_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stray").write_text("#!/bin/sh\n")
    (tmp_path / "stray").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NearmetalError, match=r"^stray: No such file or directory$"):
        HOST.output(["stray"])


def test_no_descriptor_is_left_open() -> None:
    before = os.listdir("/proc/self/fd")
    shell("true")
    with pytest.raises(NearmetalError, match="No such file or directory"):
        HOST.output(["no-such-tool"])
    assert os.listdir("/proc/self/fd") == before
