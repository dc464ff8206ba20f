# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every system call of an apply fails once, and once the process is killed there: the old state or the new one.

On a Debian tree below a temporary root, with stand-ins for GRUB's programs. What
a power cut leaves on a real disk is the business of the scenario powercut.

On a real kernel a run is killed after each of its writes to tables, and each time
restore brings back every file of them byte for byte.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.clocksource import CONCERN
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.planning import Request, Restore, Tune
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.run import run
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._host import bundle
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._version import VERSION

from lab.host import instance
from tests.support import system_calls
from tests.support.boot_trees import debian

WANTED = {"source": "hpet", "persist": True, "tsc_reliable": "enabled", "allow_unverified": False}
DONE, FAILED = 0, 3
CLOCK = "sys/devices/system/clocksource/clocksource0/current_clocksource"
# A killed run may leave these beside a file until the next run; nothing reads them.
LEFT_OVER = (".new", ".nearmetal-old", ".nearmetal-new")


CPUS = "/sys/devices/system/cpu"
QUEUES = "/sys/class/net/*/queues"
# Shape → tuned concerns, files of their tables, and the minimum number of writes.
TABLES: Dict[str, Tuple[Dict[str, Any], Tuple[str, ...], int]] = {
    "network": (
        {"network_irq": {"policy": "spread", "rps": "0-7", "xps": "auto", "owner_conflict": "take_over"}},
        ("/proc/irq/*/smp_affinity_list", f"{QUEUES}/rx-*/rps_cpus", f"{QUEUES}/tx-*/xps_cpus"),
        12,
    ),
    "cstates": (
        {"cpu_power": {"governor": "performance", "max_exit_latency_us": 10, "method": "runtime"}},
        (f"{CPUS}/cpufreq/policy*/scaling_governor", f"{CPUS}/cpu*/cpuidle/state*/disable"),
        4,
    ),
    "memory": (
        {"hugepages": {"pages": [{"size": "2M", "count": 64}], "thp": "never", "method": "runtime"}},
        (
            "/sys/devices/system/node/node*/hugepages/*/nr_hugepages",
            "/sys/kernel/mm/transparent_hugepage/enabled",
        ),
        3,
    ),
}


class Root(WritableHost):
    """The host below a temporary root."""

    def is_root(self) -> bool:
        return True


def apply(root: Path, back: bool = False) -> int:
    """A run as a module or `restore` does it."""
    request: Request = Tune(CONCERN.name, CONCERN, Wanted(WANTED))
    if back:
        request = Restore(CONCERN.name, CONCERN)
    try:
        done = run(Root(str(root)), lambda _known: [request])
    except NearmetalError:
        return FAILED
    return FAILED if any(outcome.error for outcome in done.outcomes) else DONE


def state(root: Path) -> Dict[str, str]:
    """Every file that somebody reads; the clock source without the rest of a longer name, as the kernel has it.

    When something was stored is left out: it is another second in each run.
    """
    found = {
        str(path.relative_to(root)): path.read_bytes().decode("utf-8", "replace")
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name not in ("lock", "failed.json") and not path.name.endswith(LEFT_OVER)
    }
    found[CLOCK] = found[CLOCK].split()[0]
    return {path: re.sub(r'"at": ".*"', "", text) for path, text in found.items()}


class Hosts:
    """A host before and after an apply, and fresh copies of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        debian(folder / "old")
        self.old = state(folder / "old")
        self.log = folder / "log"
        host = self.fresh()
        self.calls = system_calls.counted(lambda: apply(host), self.log)
        self.new = state(host)

    def fresh(self) -> Path:
        host = self.folder / "host"
        shutil.rmtree(host, ignore_errors=True)
        shutil.copytree(self.folder / "old", host, symlinks=True)
        return host

    def places(self) -> Iterator[Tuple[str, int]]:
        for call in system_calls.CHANGING:
            for number in range(1, self.calls[call] + 1):
                yield call, number

    def after(self, call: str, number: int, fault: str) -> Tuple[int, str]:
        host = self.fresh()
        return system_calls.outcome(lambda: apply(host), self.log, call, number, fault)


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Hosts:
    return Hosts(tmp_path_factory.mktemp("faults"))


def differing(have: Dict[str, str], expected: Dict[str, str]) -> List[str]:
    return sorted(path for path in {*have, *expected} if have.get(path) != expected.get(path))


@pytest.mark.parametrize("fault", ["EIO", "ENOSPC", "EROFS", "EINTR"])
def test_a_failing_call_leaves_the_old_state_or_the_new(hosts: Hosts, fault: str) -> None:
    places = list(hosts.places())
    wrong = []
    for call, number in places:
        code, error = hosts.after(call, number, f"error={fault}")
        now = state(hosts.folder / "host")
        expected = hosts.new if code == DONE else hosts.old
        if code not in (DONE, FAILED) or now != expected:
            wrong.append(f"{call} {number}: exit {code} {error[-300:]} {differing(now, expected)}")
    print(f"{fault}: {len(places)} places")
    assert not wrong, "\n".join(wrong)


def test_a_kill_leaves_whole_files_and_the_next_run_converges(hosts: Hosts) -> None:
    places = list(hosts.places())
    wrong = []
    for call, number in places:
        code, _error = hosts.after(call, number, "signal=KILL")
        host = hosts.folder / "host"
        now = state(host)
        third = [path for path in now if now[path] not in (hosts.old.get(path), hosts.new.get(path))]
        third = [path for path in third if not path.startswith("var/lib/nearmetal/")]
        if third or code not in (system_calls.KILLED, DONE):
            wrong.append(f"{call} {number}: exit {code}, neither old nor new: {third}")
        if apply(host) != DONE or state(host) != hosts.new:
            wrong.append(f"{call} {number}: the next run doesn't converge: {differing(state(host), hosts.new)}")
        if apply(host, back=True) != DONE or state(host) != hosts.old:
            wrong.append(f"{call} {number}: no way back: {differing(state(host), hosts.old)}")
    print(f"kill: {len(places)} places")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("shape", TABLES)
def test_a_kill_after_any_write_to_a_table_loses_no_original(
    shape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEARMETAL_LAB_INSTANCES", str(tmp_path / "instances"))
    concerns, files, least = TABLES[shape]
    with instance.running(shape, f"killed-{shape}") as host:
        host.run("ip link set ens6 up; ip link set ens7 up; systemctl stop irqbalance; modprobe acpi-cpufreq; true")
        host.put(bundle.build(VERSION), "/root/nearmetal.pyz")
        host.put((Path(system_calls.__file__).parent / "lab/killed_runs.py").read_bytes(), "/root/killed_runs.py")
        words = shlex.join(["/root/nearmetal.pyz", json.dumps(concerns), *files])
        report = json.loads(host.run(f"python3 -I /root/killed_runs.py {words}", seconds=3600))
    print(shape, {**report, "wrong": len(report["wrong"])})
    assert not report["wrong"], "\n".join(report["wrong"])
    assert report["writes"] >= least
    assert report["mixtures"] >= least - 2
