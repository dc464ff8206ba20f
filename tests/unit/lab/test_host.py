# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands on a host that reads its input slowly, or never ends; a program stands in for ssh."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.error import LabError
from lab.host import Host

Slow = Callable[[str], Host]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Slow:
    """A host whose ssh does this, after a second in which it reads nothing."""

    def made(does: str) -> Host:
        ssh = tmp_path / "ssh"
        ssh.write_text(f"#!/bin/sh\ntimeout 1 tail -f /dev/null\n{does}\n", encoding="utf-8")
        ssh.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        return Host("a", "default", "127.0.0.1", 0, "root", "", "", str(tmp_path), os.getpid(), 0)

    return made


def test_all_of_a_file_reaches_a_host_that_reads_it_late(host: Slow) -> None:
    assert host("wc -c").run("wc -c", stdin=b"x" * 1_000_000).strip() == "1000000"


def test_a_command_that_fails_shows_its_output(host: Slow) -> None:
    with pytest.raises(LabError, match="'false' failed with status 3:\nwhy"):
        host("echo why >&2; exit 3").run("false")


def test_a_command_that_does_not_end_is_killed(host: Slow) -> None:
    with pytest.raises(LabError, match="'wait' did not end within 2 s; the end of its console"):
        host("exec tail -f /dev/null").run("wait", seconds=2.0)


def test_a_reboot_that_ends_its_own_session_has_begun(host: Slow, tmp_path: Path) -> None:
    (tmp_path / "serial.log").touch()
    closed = "case $* in *reboot) echo Connection to 127.0.0.1 closed by remote host. >&2; exit 255;; *) echo 1;; esac"
    with pytest.raises(LabError, match="its QEMU ended"):
        host(closed).reboot()


def test_a_reboot_that_is_refused_says_why(host: Slow) -> None:
    with pytest.raises(LabError, match="failed with status 1:\nno bus"):
        host("case $* in *reboot) echo no bus >&2; exit 1;; *) echo 1;; esac").reboot()
