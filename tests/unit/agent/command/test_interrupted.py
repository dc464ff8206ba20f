# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command on a host is interrupted, or finds no place for what it says: it ends with a sentence and a status."""

from __future__ import annotations

import errno
import io
import resource
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterator

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.module_utils._host import store
from ansible_collections.nearmetal.ec2.plugins.modules import clocksource

from tests.support.fake_kernel import CLOCK, FakeKernel
from tests.support.hosts import files_of

Call = Callable[..., Dict[str, Any]]
CURRENT = f"{CLOCK}/current_clocksource"


class Host(FakeKernel):
    """Somebody presses Ctrl-C when a value was written."""

    interrupted = False

    def write_value(self, path: str, text: str) -> None:
        super().write_value(path, text)
        if self.interrupted:
            raise KeyboardInterrupt


@pytest.fixture
def host(tmp_path: Path, call: Call) -> Host:
    found = Host(tmp_path, files_of("xen_hvm"))
    assert call(clocksource.main, found, source="tsc")["changed"]
    return found


def current(host: Host) -> str:
    return (Path(host.root) / CURRENT[1:]).read_text().strip()


def test_ctrl_c_in_a_restore_is_one_sentence_and_loses_nothing(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    host.interrupted = True
    assert command(["restore"], host) == 130
    assert capsys.readouterr().err == (
        "nearmetal: interrupted; the journal has what was begun: run it again, or `nearmetal restore`\n"
    )
    host.interrupted = False
    assert command(["restore"], host) == 0
    assert current(host) == "xen"
    assert not (Path(host.root) / "var/lib/nearmetal").exists()


def test_without_a_standard_output_the_error_says_so(
    host: Host, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", None)
        assert command(["restore"], host) == 1
    assert capsys.readouterr().err == "nearmetal: the output can't be written: there is no standard output\n"
    assert current(host) == "xen"


class Full(io.StringIO):
    """A file on a full disk."""

    def write(self, _text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("stream", [None, Full()], ids=["none", "full"])
def test_without_a_standard_error_the_status_says_so(
    host: Host, monkeypatch: pytest.MonkeyPatch, stream: "io.StringIO | None"
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    assert command(["restore", "nonsense"], host) == 1


@contextmanager
def nothing_written() -> Iterator[None]:
    """No file takes a byte, as on a full file system."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_run_directory_keeps_nobody_from_a_way_back(host: Host) -> None:
    place = Path(host.root) / store.LOCK[1:]
    place.unlink()
    with nothing_written(), store.lock(host):
        assert place.read_bytes() == b""
    with store.lock(host):
        assert place.read_bytes().strip().isdigit()
