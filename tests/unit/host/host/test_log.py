# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each run that may change a host leaves a line in the host's log."""

from __future__ import annotations

import socket
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.module_utils._version import VERSION
from ansible_collections.nearmetal.ec2.plugins.modules import restore, tune
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report import summary

from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of
from tests.support.report import reports

Call = Callable[..., Dict[str, Any]]
JOURNAL = "journal /var/lib/nearmetal/journal.json"


class Logged:
    """A host, and the lines that its log was sent."""

    def __init__(self, root: Path, log: socket.socket) -> None:
        self.host = FakeKernel(root, files_of("nitro"))
        self._log = log

    def lines(self) -> List[str]:
        """The text of each line since the last call; its head says daemon.info and the process."""
        lines = []
        while True:
            try:
                head, text = self._log.recv(4096).decode().split(": ", 1)
            except BlockingIOError:
                return lines
            assert head.startswith("<30>nearmetal[")
            lines.append(text)


@pytest.fixture
def logged() -> Iterator[Logged]:
    """Not below pytest's folder: the path of a socket has at most 107 bytes."""
    with tempfile.TemporaryDirectory() as name, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
        (Path(name) / "dev").mkdir()
        log.bind(f"{name}/dev/log")
        log.setblocking(False)
        yield Logged(Path(name), log)


def counted(result: Dict[str, Any]) -> int:
    """How much a report says that the run has changed."""
    return summary.status_totals(reports.report(result))["changed"]


def test_who_ran_what_and_how_much_it_changed(logged: Logged, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_USER", "jane\n<0>kernel: panic")
    wanted = {"workload": ["web"], "concerns": {"network_stack": {"somaxconn": 8192}}}
    changed = counted(call(tune.main, logged.host, **wanted))
    (line,) = logged.lines()
    assert line.startswith(f"nearmetal {VERSION}: tune, workload web, by jane <0>kernel: panic, ")
    assert "\n" not in line, "a name forges no second line"
    assert changed > 1
    assert line.endswith(f", {changed} changed, {JOURNAL}")
    monkeypatch.delenv("SUDO_USER")
    call(tune.main, logged.host, **wanted)
    assert logged.lines() == [f"nearmetal {VERSION}: tune, workload web, by root, 0 changed, {JOURNAL}"]


def test_the_way_back_counts_as_its_report_does(logged: Logged, call: Call) -> None:
    """The files of the unit are one change, as in the report's table."""
    call(tune.main, logged.host, workload="web")
    logged.lines()
    changed = counted(call(restore.main, logged.host))
    assert logged.lines() == [f"nearmetal {VERSION}: restored, by root, {changed} changed, {JOURNAL}"]


def test_what_only_looks_leaves_none_and_a_restore_does(logged: Logged, call: Call) -> None:
    call(tune.main, logged.host, concerns={"network_stack": {"somaxconn": 8192}})
    logged.lines()
    call(tune.main, logged.host, check=True, concerns={"network_stack": {"somaxconn": 4096}})
    for words in (["status"], ["plan"], ["restore", "--check"]):
        command(words, logged.host)
    assert logged.lines() == []
    assert command(["restore"], logged.host) == 0
    (line,) = logged.lines()
    assert line.startswith(f"nearmetal {VERSION}: nearmetal on the host, by root, ")


def test_a_host_without_a_log_is_tuned_all_the_same(tmp_path: Path, call: Call) -> None:
    result = call(tune.main, FakeKernel(tmp_path, files_of("nitro")), concerns={"network_stack": {"somaxconn": 8192}})
    assert result["changed"]
