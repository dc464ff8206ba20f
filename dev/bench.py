# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run costs: A against B, in interleaved pairs over the same warm connection.

`python -m dev.bench [--pairs 10] [--inventory FILE] [--only WORDS]`. Printed, never a timed test:
machines differ, so only the ratio within one run means anything.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from dev import ROOT, sshd

PLAYBOOKS = ROOT / "tests" / "bench"
FACT_MODULES = ("topology_facts", "host_facts")


@dataclass(frozen=True)
class Cost:
    """Of one run: seconds on the clock, and seconds of CPU of the process and all it waited for."""

    wall: float
    cpu: float


@dataclass(frozen=True)
class Comparison:
    """A against B, each one or more argvs; `at_most` is the ratio on the clock that the project allows itself."""

    name: str
    a_name: str
    a: "list[list[str]]"
    b_name: str
    b: "list[list[str]]"
    at_most: float


class BenchError(Exception):
    """A command that was to be measured failed; a failed run has no cost worth printing."""


def environment(**more: str) -> "dict[str, str]":
    """What ansible-playbook runs in."""
    return {
        **os.environ,
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".ansible/collections"),
        "ANSIBLE_NOCOLOR": "1",
        **more,
    }


def run(argv: "list[str]", variables: "dict[str, str]") -> str:
    """What a command says; BenchError when it fails."""
    done = subprocess.run(
        argv, cwd=ROOT, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise BenchError(f"`{' '.join(argv)}` failed ({done.returncode}):\n{done.stdout}{done.stderr}")
    return done.stdout


def cost_of(commands: "list[list[str]]", variables: "dict[str, str]") -> Cost:
    """Run one after the other. CPU is that of this process's children between two readings of rusage."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    for argv in commands:
        run(argv, variables)
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(wall, (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime))


def pairs(comparison: Comparison, count: int) -> "list[tuple[Cost, Cost]]":
    """`count` pairs after one that warms up; every second pair runs B first, so that drift hits both alike."""
    variables = environment()
    measured = []
    for number in range(count + 1):
        if number % 2:
            second = cost_of(comparison.b, variables)
            pair = (cost_of(comparison.a, variables), second)
        else:
            first = cost_of(comparison.a, variables)
            pair = (first, cost_of(comparison.b, variables))
        if number:
            measured.append(pair)
        print(f"\r  {comparison.name}: pair {number} of {count}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return measured


def summary(comparison: Comparison, measured: "list[tuple[Cost, Cost]]") -> "list[str]":
    """Medians of A and B, and the median of the ratios within the pairs."""
    lines = [f"{comparison.name}: {len(measured)} pairs, median (lowest to highest)"]
    for measure in ("wall", "cpu"):
        a = [float(getattr(pair[0], measure)) for pair in measured]
        b = [float(getattr(pair[1], measure)) for pair in measured]
        ratios = [one / other for one, other in zip(a, b)]
        allowed = f", allowed {comparison.at_most:.2f}" if measure == "wall" else ""
        lines.append(
            f"  {measure:<4} {comparison.a_name} {_spread(a)} s · {comparison.b_name} {_spread(b)} s · "
            f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}){allowed}"
        )
    return lines


def _spread(values: "list[float]") -> str:
    return f"{statistics.median(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def whole_run(place: str, inventory: Path, *arguments: str) -> Comparison:
    """A no-op tune against a playbook that only pings. On the lab the pair that warms up makes it a no-op."""

    def playbook(name: str, *more: str) -> "list[list[str]]":
        return [["ansible-playbook", "-i", str(inventory), *more, str(PLAYBOOKS / f"{name}.yml")]]

    return Comparison(f"no-op tune on {place}", "tune", playbook("tune", *arguments), "ping", playbook("ping"), 1.5)


def payloads(inventory: Path, folder: Path) -> "dict[str, Path]":
    """The files that Ansible would send to a host: module -> its payload, kept on this machine's server."""
    variables = environment(ANSIBLE_KEEP_REMOTE_FILES="1", ANSIBLE_PIPELINING="0", ANSIBLE_REMOTE_TMP=str(folder))
    for name in ("ping", "facts", "setup", "tune"):
        run(["ansible-playbook", "-i", str(inventory), "--check", str(PLAYBOOKS / f"{name}.yml")], variables)
    return {path.stem.removeprefix("AnsiballZ_"): path for path in folder.rglob("AnsiballZ_*.py")}


def facts_alone(sent: "dict[str, Path]", count: int) -> "list[str]":
    """CPU of our fact modules against setup's as they run on a host, beyond what a module that does nothing costs.

    Starting Python and unpacking the payload is Ansible's share, the same for every module: ping measures it.
    """
    names = ("ping", *FACT_MODULES, "setup")
    spent: "dict[str, list[float]]" = {name: [] for name in names}
    for _number in range(count):
        for name in names:
            spent[name].append(cost_of([[sshd.python(), str(sent[name])]], environment()).cpu)
    middle = {name: statistics.median(values) for name, values in spent.items()}
    beyond = {name: middle[name] - middle["ping"] for name in names}
    own = sum(beyond[name] for name in FACT_MODULES)
    each = " · ".join(f"{name} {_spread(values)}" for name, values in spent.items())
    ratio = f"ratio {own / beyond['setup']:.2f}, allowed 0.33"
    return [
        f"facts on the host: {count} interleaved runs, median CPU seconds (lowest to highest)",
        f"  cpu  {each}",
        f"  beyond a ping: ours {own:.3f} s · setup {beyond['setup']:.3f} s · {ratio}",
    ]


def measure(count: int, lab: "Path | None", only: str) -> "list[str]":
    """All comparisons whose name contains `only`, as lines."""
    lines = []
    with tempfile.TemporaryDirectory(prefix="nm-bench-") as folder, sshd.running() as native:
        sent = payloads(native.inventory, Path(folder))
        sizes = " · ".join(f"{name} {path.stat().st_size / 1024:.0f} KiB" for name, path in sorted(sent.items()))
        # --check: a benchmark must never tune the machine that somebody happens to run it on.
        comparisons = [whole_run("a native sshd", native.inventory, "--check")]
        comparisons += [whole_run("the lab", lab)] if lab else []
        for comparison in comparisons:
            if only in comparison.name:
                lines += summary(comparison, pairs(comparison, count))
        if only in "facts on the host":
            lines += facts_alone(sent, count)
    return [*lines, f"payloads: {sizes}"]


def main(arguments: "list[str]") -> int:
    """Measure on a server of this machine's own, and on the hosts of --inventory (a lab host)."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--inventory", type=Path, help="also measure on these hosts, which will be tuned")
    parser.add_argument("--only", default="", help="only comparisons whose name contains this")
    options = parser.parse_args(arguments)
    try:
        lines = measure(options.pairs, options.inventory, options.only)
    except (BenchError, sshd.SshdError) as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
