# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit on a slow host: no boot waits for it, comparing is cheap, no stop separates a write and its record."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.modules import clocksource, restore, tune

from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of
from tests.unit.levers.unit.test_unit import AGENT, AVAILABLE, CURRENT, SERVICE, UNIT, boot, current, files

Call = Callable[..., Dict[str, Any]]


@pytest.fixture
def host(tmp_path: Path) -> FakeKernel:
    return FakeKernel(tmp_path, files_of("xen_hvm"))


def lines(host: FakeKernel, path: str) -> "set[str]":
    return set((Path(host.root) / path).read_text().splitlines())


def test_no_boot_waits_for_it_and_no_clock_ends_it(host: FakeKernel, call: Call) -> None:
    call(clocksource.main, host, source="auto")
    service = lines(host, SERVICE)
    assert "Type=simple" in service, "a start that lasts is a job, and systemd boots until there is no job"
    assert "[Install]" not in service, "no target of the boot may want it"
    assert not {line for line in service if line.startswith(("TimeoutStartSec=", "RuntimeMaxSec=", "WantedBy="))}
    assert {line.split("=")[0] for line in service} >= {"LimitCPU", "KillMode", "TimeoutStopSec"}


def test_the_unit_of_an_older_version_becomes_this_ones(host: FakeKernel, call: Call) -> None:
    before = files(host)
    call(clocksource.main, host, source="auto")
    installed = files(host)
    older = Path(host.root) / SERVICE
    older.write_text(older.read_text().replace("Type=simple", "Type=oneshot\nTimeoutStartSec=30"))
    wants = older.parent / "multi-user.target.wants"
    wants.mkdir(exist_ok=True)
    (wants / "nearmetal.service").symlink_to("/etc/systemd/system/nearmetal.service")
    again = call(clocksource.main, host, source="auto")
    assert again["changed"]
    assert {path: files(host).get(path) for path in UNIT} == {path: installed[path] for path in UNIT}
    assert not list(wants.iterdir())
    assert not call(clocksource.main, host, source="auto")["changed"]
    (wants / "nearmetal.service").symlink_to("/etc/systemd/system/nearmetal.service")
    call(restore.main, host)
    assert files(host) == before, "it also goes from a host that was never upgraded"


class Shutdown(FakeKernel):
    """A host that is shut down at one of our calls: this process gets systemd's signal."""

    at = ""

    def write_value(self, path: str, text: str) -> None:
        self._perhaps(path)
        super().write_value(path, text)

    def text(self, path: str, limit: int = 1024 * 1024) -> "str | None":
        if not self.at.startswith("write "):
            self._perhaps(path)
        return super().text(path, limit)

    def _perhaps(self, path: str) -> None:
        if self.at.split(" ")[-1] == path:
            self.at = ""
            os.kill(os.getpid(), signal.SIGTERM)


def test_a_shutdown_while_it_writes_waits_for_the_record(tmp_path: Path, call: Call) -> None:
    host = Shutdown(tmp_path, files_of("xen_hvm_4_sockets"))
    somaxconn = tmp_path / "proc/sys/net/core/somaxconn"
    wanted = {"clocksource": {"source": "auto"}, "network_stack": {"somaxconn": 8192}, "network_irq": {"rps": "auto"}}
    call(tune.main, host, concerns=wanted)
    before = somaxconn.read_text()
    boot(host)
    somaxconn.write_text("4096\n")
    host.at = f"write {CURRENT}"
    with pytest.raises(SystemExit) as ended:
        command(["reapply", "--if-changed"], host)
    assert ended.value.code == 0, "an end that was asked for is no failure"
    journal = json.loads((tmp_path / "var/lib/nearmetal/journal.json").read_text())
    (entry,) = [entry for entry in journal["entries"] if entry["what"] == "clock.current"]
    assert (current(host), entry["original"]) == ("tsc", "xen"), "what was begun is whole, with its record"
    assert somaxconn.read_text() == "4096\n", "nothing more was begun"
    assert command(["reapply", "--if-changed"], host) == 0
    assert somaxconn.read_text() == before, "the next look plans the rest"
    assert not call(restore.main, host).get("failed")
    assert current(host) == "xen"


def test_a_shutdown_while_it_plans_ends_it_at_once(tmp_path: Path, call: Call) -> None:
    host = Shutdown(tmp_path, files_of("xen_hvm"))
    call(clocksource.main, host, source="auto")
    boot(host)
    host.at = AVAILABLE
    handler = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit):
        command(["reapply", "--if-changed"], host)
    assert host.written == []
    assert signal.getsignal(signal.SIGTERM) is handler
    assert command(["reapply", "--if-changed"], host) == 0
    assert current(host) == "tsc"


class Restored(FakeKernel):
    """A host whose unit was removed by a restore for which the unit waited."""

    def text(self, path: str, limit: int = 1024 * 1024) -> "str | None":
        if path == "/etc/os-release":
            (Path(self.root) / AGENT).unlink(missing_ok=True)
        return super().text(path, limit)


def test_a_run_that_waited_for_a_restore_has_nothing_to_do(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("xen_hvm"))
    call(clocksource.main, host, source="auto")
    boot(host)
    host.__class__ = Restored
    with pytest.raises(SystemExit) as ended:
        command(["reapply", "--if-changed"], host)
    assert ended.value.code == 0
    assert host.written == []


# Runs a command in a process of its own, without what a site adds, and prints which modules it imported.
IMPORTED = """
import sys, zipimport
__loader__ = zipimport.zipimporter(sys.argv[1])
sys.path.insert(0, sys.argv[1])
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost
class Root(WritableHost):
    def is_root(self):
        return True
if sys.argv[3:] == ["task"]:
    from ansible_collections.nearmetal.ec2.plugins.module_utils._tasks.order import main
    code = main(Root(sys.argv[2]))
else:
    from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main
    code = main(sys.argv[3:], Root(sys.argv[2]))
print()
print(code, *sys.modules)
"""


def imported(host: FakeKernel, *words: str, asked: str = "") -> "set[str]":
    argv = [sys.executable, "-I", "-S", "-c", IMPORTED, str(Path(host.root) / AGENT), host.root, *words]
    output = subprocess.run(argv, input=asked, stdout=subprocess.PIPE, check=True, text=True).stdout
    code, *modules = output.splitlines()[-1].split()
    assert code == "0"
    return {name.split(".module_utils.")[-1] for name in modules}


def test_a_comparison_without_a_change_imports_next_to_nothing(host: FakeKernel, call: Call) -> None:
    call(clocksource.main, host, source="auto")
    assert command(["reapply"], host) == 0
    costly = {"argparse", "dataclasses", "hashlib", "json", "re", "shutil", "socket", "subprocess", "typing"}
    assert not costly & imported(host, "reapply", "--if-changed"), (
        "every host looks every two minutes, and nearly all that it costs is importing"
    )


def test_a_plan_imports_only_the_facts_that_it_needs(host: FakeKernel, call: Call) -> None:
    call(clocksource.main, host, source="auto")
    modules = imported(host, "reapply")
    assert {"_facts.clock", "_concerns.clocksource"} <= modules
    unneeded = {
        "hashlib",
        "zipfile",
        "_agent.report",
        "_concerns.numa",
        "_facts.block",
        "_facts.running",
        "_levers.block",
    }
    assert not {*unneeded, "_workloads.registry"} & modules


def test_a_tune_without_a_change_imports_no_dataclasses(host: FakeKernel, call: Call) -> None:
    wanted = {"concerns": {"clocksource": {"source": "auto"}}}
    call(tune.main, host, **wanted)
    order = {"module": "tune", "wanted": wanted, "check": False, "more": {"drawn": False}, "reader": 1}
    modules = imported(host, "task", asked=json.dumps(order))
    assert {"_tasks.tuning", "_concerns.clocksource"} <= modules
    assert not {"dataclasses", "inspect"} & modules, "with its classes it was a sixth of what a run costs"
    unneeded = {
        "datetime",
        "_agent.watch",
        "_concerns.kernel_check",
        "_prove.host.running",
        "_facts.running",
        "_measured",
        "_workloads.hpc",
    }
    assert (unneeded & modules) == set(), "loading is most of what a run costs"
