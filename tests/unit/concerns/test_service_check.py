# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""service_check's real main(): it reports, and writes nothing."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict

from ansible_collections.nearmetal.ec2.plugins.module_utils._facts import service_load
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host
from ansible_collections.nearmetal.ec2.plugins.modules import service_check, tune

from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of

Call = Callable[..., Dict[str, Any]]
GROUP = "/sys/fs/cgroup/system.slice/nginx.service"


def test_it_reads_and_changes_nothing(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, {**files_of("nitro"), f"{GROUP}/cgroup.procs": "700\n", f"{GROUP}/pids.current": "3\n"})
    for check in (True, False):
        result = call(service_check.main, host, services=["nginx.service"], check=check)
        assert not result["changed"]
        assert result["actions"] == []
        statuses = {finding["knob"]: finding["status"] for finding in result["findings"]}
        assert statuses == {"threads": "ok", "listeners": "unknown", "open_files": "unknown"}
    assert host.written == []


def test_it_is_a_concern_of_tune(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("nitro"))
    result = call(tune.main, host, concerns={"service_check": {"services": ["nginx.service"]}})
    assert [(finding["knob"], finding["where"]) for finding in result["findings"]] == [("services", "nginx.service")]


class Grouped(Host):
    """This machine, with some of its processes as a service."""

    def __init__(self, *pids: int) -> None:
        super().__init__()
        self._pids = pids

    def names(self, path: str) -> "list[str]":
        groups = {"/sys/fs/cgroup": ["system.slice"], "/sys/fs/cgroup/system.slice": ["nginx.service"]}
        if path.startswith("/sys/fs/cgroup"):
            return groups.get(path, [])
        return super().names(path)

    def _read(self, path: str, limit: int, records: bool) -> "str | None":
        if path == f"{GROUP}/cgroup.procs":
            return "".join(f"{pid}\n" for pid in self._pids)
        return super()._read(path, limit, records)


def test_this_machines_kernel_shows_a_shared_socket_and_the_limit() -> None:
    with socket.socket() as shared:
        shared.bind(("127.0.0.1", 0))
        shared.listen()
        port, number = shared.getsockname()[1], shared.fileno()
        wait = [sys.executable, "-S", "-c", "import sys; sys.stdin.read()"]
        with subprocess.Popen(wait, stdin=subprocess.PIPE, pass_fds=[number]) as first:
            with subprocess.Popen(wait, stdin=subprocess.PIPE, pass_fds=[number]) as second:
                found = service_load.observe(Grouped(os.getpid(), first.pid, second.pid))["nginx.service"]
                second.communicate()
            first.communicate()
    assert found.processes == 3
    assert found.listeners is not None
    assert found.listeners[port] == (1, 3)
    assert found.files is not None
    assert found.files[1] >= found.files[0] > 0
