# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an audit of N hosts costs the controller against only pinging them: python -m tests.bench.fleet [N …]

The hosts are N names of this machine, each with a warm connection of its own to an ssh server that
is started for it. What counts is the controller's CPU: the far side runs here too and fills the
clock. Printed, never a timed test. The project allows itself 1.5.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from dev import ROOT, bench, sshd

PAIRS = 3
ALLOWED = 1.5


def main(sizes: "list[int]") -> None:
    """Print a line per size."""
    with sshd.running() as native, tempfile.TemporaryDirectory(prefix="nm-fleet-") as folder:
        for size in sizes:
            inventory = _inventory(native, Path(folder), size)
            try:
                print(_line(size, inventory, Path(folder)), flush=True)
            finally:
                _close(Path(folder), size)


def _line(size: int, inventory: Path, folder: Path) -> str:
    variables = bench.environment(ANSIBLE_FORKS="10", NEARMETAL_REPORT_DIRECTORY=str(folder / "reports"))
    plain = {**variables, "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.default"}
    audit = ["ansible-playbook", "-i", str(inventory), "nearmetal.ec2.audit", "-e", "tune_allow_not_ec2=true"]
    ping = ["ansible-playbook", "-i", str(inventory), str(ROOT / "tests/bench/ping.yml")]
    bench.cost_of([ping], plain)  # opens the connections
    pairs = [(bench.cost_of([audit], variables), bench.cost_of([ping], plain)) for _pair in range(PAIRS)]
    ours, theirs = (statistics.median(pair[side].cpu for pair in pairs) for side in (0, 1))
    wall = statistics.median(pair[0].wall / pair[1].wall for pair in pairs)
    ratio = statistics.median(pair[0].cpu / pair[1].cpu for pair in pairs)
    return (
        f"{size:4} hosts: audit {ours:6.2f} s, ping {theirs:6.2f} s of the controller's CPU: "
        f"ratio {ratio:.2f}, allowed {ALLOWED}; on the clock {wall:.2f}"
    )


def _inventory(native: sshd.Native, folder: Path, size: int) -> Path:
    (line,) = native.inventory.read_text("utf-8").splitlines()
    _name, rest = line.split(" ", 1)
    shared = f"ControlPath={native.inventory.parent}/master"
    lines = [f"h{number:03d} {rest.replace(shared, f'ControlPath={folder}/{number}')}" for number in range(size)]
    path = folder / "inventory.ini"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def _close(folder: Path, size: int) -> None:
    for number in range(size):
        close = ["ssh", "-o", f"ControlPath={folder}/{number}", "-O", "exit", "native"]
        subprocess.run(close, stderr=subprocess.DEVNULL, check=False)


if __name__ == "__main__":
    main([int(number) for number in sys.argv[1:]] or [10, 50, 200])
