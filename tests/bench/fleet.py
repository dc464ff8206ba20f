# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's cost of N hosts, compared with only pinging them: make bench ARGS="--only fleet --hosts N …"

The hosts are simulated: each has a warm connection of its own to an ssh server that is started for
it, an interpreter of its own, and behind that its own fake kernel, of four classes in turn. Measured
are an audit and a tune run that changes nothing. What counts is the controller's CPU: the far side
runs too and fills the clock. Printed, never a timed test. The project allows itself twice a ping.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

from dev import ROOT, bench
from dev.programs import sshd
from tests.support.simulated import simulate

# Pairs of runs, by the size of the fleet: the cost of a run as such varies by more than the cost of 200 hosts.
MOST_PAIRS, FEWEST_PAIRS = 10, 1
HOSTS_OF_ALL_PAIRS = 150
ALLOWED = 2.0
FORKS = 10
KINDS = ("nitro", "xen_hvm", "nitro_burstable", "graviton")
SAMPLE_SECONDS = 0.2


@dataclass(frozen=True)
class Playbook:
    """A playbook that is compared with a ping."""

    name: str
    words: "tuple[str, ...]"
    changes: bool  # whether its first run leaves the next ones less to do


PLAYBOOKS = (
    Playbook("audit", ("nearmetal.ec2.audit",), False),
    Playbook("tune", ("nearmetal.ec2.tune", "-e", "tune_serial=100%"), True),
)


def main(sizes: "list[int]") -> None:
    """Print a line per size and playbook, and how the cost of a host grows with their number."""
    cpu_seconds: "dict[str, list[float]]" = {}
    with sshd.running() as native, tempfile.TemporaryDirectory(prefix="nm-fleet-") as name:
        folder = Path(name)
        for size in sizes:
            inventory = simulated(native, folder, size)
            try:
                bench.cost_of([_ping(inventory)], _plain(folder))  # opens the connections
                for playbook in PLAYBOOKS:
                    # A run of a large fleet takes minutes, so only the necessary ones are repeated.
                    warm = playbook.changes or size == sizes[0]
                    line, cpu = _measure(playbook, size, inventory, folder, warm)
                    cpu_seconds.setdefault(playbook.name, []).append(cpu / size)
                    print(line, flush=True)
            finally:
                close(folder, size)
    for playbook_name, costs in cpu_seconds.items():
        shown = " · ".join(f"{size}: {1000 * cost:.0f} ms" for size, cost in zip(sizes, costs))
        print(f"{playbook_name}: the controller's CPU per host, by number of hosts: {shown}")


def _ping(inventory: Path) -> "list[str]":
    return ["ansible-playbook", "-i", str(inventory), str(ROOT / "tests/bench/ping.yml")]


def _plain(folder: Path) -> "dict[str, str]":
    return {**_ours(folder), "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.default"}


def _ours(folder: Path) -> "dict[str, str]":
    return bench.environment(ANSIBLE_FORKS=str(FORKS), NEARMETAL_REPORT_DIRECTORY=str(folder / "reports"))


def _measure(playbook: Playbook, size: int, inventory: Path, folder: Path, warm: bool) -> "tuple[str, float]":
    """The line to print, and the controller's CPU in seconds."""
    words = ["ansible-playbook", "-i", str(inventory), *playbook.words, "-e", "tune_workload=in_memory_database"]
    if warm:
        bench.cost_of([words], _ours(folder))
    count = max(FEWEST_PAIRS, min(MOST_PAIRS, HOSTS_OF_ALL_PAIRS // size))
    pairs = []
    with _Forks() as forks:
        for _pair in range(count):
            measured = bench.cost_of([words], _ours(folder))
            pairs.append((measured, bench.cost_of([_ping(inventory)], _plain(folder))))
    cpu, pinged = (statistics.median(pair[side].cpu for pair in pairs) for side in (0, 1))
    wall = statistics.median(pair[0].wall / pair[1].wall for pair in pairs)
    ratios = [pair[0].cpu / pair[1].cpu for pair in pairs]
    line = (
        f"{size:4} hosts, {count} pairs: {playbook.name} {cpu:6.2f} s, ping {pinged:6.2f} s of the controller's CPU,"
        f" ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}), allowed {ALLOWED};"
        f" on the clock {wall:.2f};"
        f" a fork has at most {forks.most / 1024:.0f} MiB of its own"
    )
    return line, cpu


class _Forks:
    """The largest private memory of a worker of the running ansible-playbook."""

    def __init__(self) -> None:
        self.most = 0  # KiB
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> "_Forks":
        self._watch.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._over.set()
        self._watch.join()

    def _look(self) -> None:
        while not self._over.wait(SAMPLE_SECONDS):
            for runner in _children("self"):
                for worker in _children(runner):
                    self.most = max(self.most, _private(worker))


def _children(process: str) -> "list[str]":
    found: "list[str]" = []
    for tasks in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            found += tasks.read_text("ascii").split()
        except OSError:
            continue
    return found


def _private(process: str) -> int:
    """Private memory of a process in KiB; 0 if it has ended or isn't Python."""
    try:
        if b"ansible-playbook" not in Path(f"/proc/{process}/cmdline").read_bytes():
            return 0
        lines = Path(f"/proc/{process}/smaps_rollup").read_text("ascii").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


def simulated(native: sshd.Native, folder: Path, size: int) -> Path:
    """Simulate so many hosts below the folder, unless they are there; their inventory."""
    for number in range(size):
        if not (folder / f"h{number:03d}").exists():
            (folder / f"h{number:03d}").mkdir()
            simulate(folder / f"h{number:03d}", KINDS[number % len(KINDS)])
    (line,) = native.inventory.read_text("utf-8").splitlines()
    _name, rest = line.split(" ", 1)
    shared = f"ControlPath={native.inventory.parent}/master"
    lines = []
    for number in range(size):
        host_variables = rest.replace(shared, f"ControlPath={folder}/{number}")
        # A large fleet's run takes longer than two minutes.
        host_variables = host_variables.replace("ControlPersist=120s", "ControlPersist=1h")
        host_variables = host_variables.replace(f"={sshd.python()} ", f"={folder}/h{number:03d}/python ")
        lines.append(f"h{number:03d} {host_variables} ansible_become_exe={folder}/h{number:03d}/sudo")
    path = folder / "inventory.ini"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def close(folder: Path, size: int) -> None:
    """Close the connections of the hosts."""
    for number in range(size):
        close = ["ssh", "-o", f"ControlPath={folder}/{number}", "-O", "exit", "native"]
        subprocess.run(close, stderr=subprocess.DEVNULL, check=False)


if __name__ == "__main__":
    main([int(number) for number in sys.argv[1:]] or [10, 50, 200])
