# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run costs: A against B, in interleaved pairs over the same warm connection.

`python -m dev.bench [--pairs 10] [--no-lab] [--only PART] [--hosts 10 50 200]`. It prints figures beside the
project's limits and never fails: machines differ, and seconds mean something only on an idle one.
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
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

from dev import ROOT
from dev.programs import sshd
from lab.error import LabError
from lab.host import Host, instance, inventory

PLAYBOOKS = ROOT / "tests" / "bench"
FACT_MODULES = ("topology_facts", "host_facts")


@dataclass(frozen=True)
class Cost:
    """Seconds of one run on the clock, and CPU seconds of its process and of all that it waited for."""

    wall: float
    cpu: float


@dataclass(frozen=True)
class Comparison:
    """A against B, each one or more argvs; `at_most` has the highest allowed ratios."""

    name: str
    a_name: str
    a: "list[list[str]]"
    b_name: str
    b: "list[list[str]]"
    at_most: "Cost | None" = None  # None: no limit, only a comparison


class BenchError(Exception):
    """A measured command failed, so its cost means nothing."""


def environment(**more: str) -> "dict[str, str]":
    """The environment of ansible-playbook. Bytecode is kept, as on a controller: compiling it would cost both sides."""
    return {
        **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".ansible/collections"),
        "ANSIBLE_NOCOLOR": "1",
        **more,
    }


def with_collection() -> "dict[str, str]":
    """The environment of a program of ours that imports the collection and simulates hosts."""
    return environment(PYTHONPATH=f"{ROOT / '.ansible/collections'}{os.pathsep}{ROOT}")


def run(argv: "list[str]", variables: "dict[str, str]") -> str:
    """A command's output. Raises BenchError when it fails."""
    done = subprocess.run(
        argv, cwd=ROOT, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise BenchError(f"`{' '.join(argv)}` failed ({done.returncode}):\n{done.stdout}{done.stderr}")
    return done.stdout


def cost_of(commands: "list[list[str]]", variables: "dict[str, str]") -> Cost:
    """Run commands one after the other; the CPU time is that of this process's children, by rusage."""
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
        ratios = [first / other for first, other in zip(a, b)]
        allowed = f", allowed {getattr(comparison.at_most, measure):.2f}" if comparison.at_most else ""
        lines.append(
            f"  {measure:<4} {comparison.a_name} {spread(a)} s · {comparison.b_name} {spread(b)} s · "
            f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}){allowed}"
        )
    return lines


def spread(values: "list[float]") -> str:
    """`median (lowest to highest)`, in seconds."""
    return f"{statistics.median(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def whole_run(name: str, hosts: Path, *arguments: str, at_most: "Cost | None" = None) -> Comparison:
    """A tune against a playbook that only pings. On the lab the warm-up pair tunes, so that all others are no-ops."""

    def playbook(file: str, *more: str) -> "list[list[str]]":
        return [["ansible-playbook", "-i", str(hosts), *more, str(PLAYBOOKS / f"{file}.yml")]]

    return Comparison(name, "tune", playbook("tune", *arguments), "ping", playbook("ping"), at_most)


@contextmanager
def lab_host(folder: Path) -> "Iterator[tuple[Host, Path]]":
    """A lab host that ends with the block, and its inventory."""
    host = instance.up("default", f"bench-{os.getpid()}", outlive=False)
    try:
        path = folder / "lab.ini"
        path.write_text(inventory.ansible([host]), encoding="utf-8")
        yield host, path
    finally:
        instance.down(host.name)


def payloads(hosts: Path, folder: Path) -> "dict[str, Path]":
    """The files that Ansible would send to a host, by module, kept on this machine's server."""
    files: "dict[str, Path]" = {}
    for playbook, modules in (("ping", ["ping"]), ("facts", FACT_MODULES), ("setup", ["setup"]), ("tune", ["tune"])):
        kept = folder / playbook
        variables = environment(ANSIBLE_KEEP_REMOTE_FILES="1", ANSIBLE_PIPELINING="0", ANSIBLE_REMOTE_TMP=str(kept))
        run(["ansible-playbook", "-i", str(hosts), "--check", str(PLAYBOOKS / f"{playbook}.yml")], variables)
        sent = sorted(kept.rglob("AnsiballZ_*.py"), key=lambda path: path.stat().st_mtime_ns)  # one for each task
        files.update(zip(modules, sent))
    return files


def facts_alone(payload_files: "dict[str, Path]", count: int) -> "list[str]":
    """CPU of our fact modules and of setup on a host, less that of ping.

    Ping measures what every module costs: starting Python and unpacking the payload.
    """
    names = ("ping", *FACT_MODULES, "setup")
    spent: "dict[str, list[float]]" = {name: [] for name in names}
    for _number in range(count):
        for name in names:
            spent[name].append(cost_of([[sshd.python(), str(payload_files[name])]], environment()).cpu)
    middle = {name: statistics.median(values) for name, values in spent.items()}
    beyond = {name: middle[name] - middle["ping"] for name in names}
    fact_modules = sum(beyond[name] for name in FACT_MODULES)
    per_module = " · ".join(f"{name} {spread(values)}" for name, values in spent.items())
    ratio = f"ratio {fact_modules / beyond['setup']:.2f}, allowed 0.50"
    return [
        f"facts on the host: {count} interleaved runs, median CPU seconds (lowest to highest)",
        f"  cpu  {per_module}",
        f"  beyond a ping: ours {fact_modules:.3f} s · setup {beyond['setup']:.3f} s · {ratio}",
    ]


def compare(comparison: Comparison, count: int) -> None:
    """Measure and print."""
    print("\n".join(summary(comparison, pairs(comparison, count))), flush=True)


def fleet(sizes: "list[int]") -> None:
    """Print what fleets of these sizes cost the controller."""
    argv = [sys.executable, "-m", "tests.bench.fleet", *map(str, sizes)]
    done = subprocess.run(argv, cwd=ROOT, env=with_collection(), check=False)
    if done.returncode:
        raise BenchError(f"`{' '.join(argv[1:])}` failed ({done.returncode})")


def unit(folder: Path, count: int) -> None:
    """Print what the unit's run costs a lab host."""
    from tests.bench import unit as measured  # it needs this module

    with lab_host(folder) as (host, hosts):
        print("\n".join(measured.measure(host, hosts, count, None)), flush=True)


def observation() -> None:
    """Print what observing a large host costs."""
    print(run([sys.executable, "-m", "tests.bench.observe_network"], with_collection()), end="", flush=True)


def measure(count: int, with_lab: bool, only: str) -> None:
    """Run all comparisons whose name contains `only`."""
    with tempfile.TemporaryDirectory(prefix="nm-bench-") as name, sshd.running() as native:
        folder = Path(name)
        if only in "a native sshd":
            # --check: a benchmark must not tune the machine that it runs on.
            compare(whole_run("check on a native sshd, no agent installed", native.inventory, "--check"), count)
        if only in "facts":
            (folder / "sent").mkdir()
            payload_files = payloads(native.inventory, folder / "sent")
            print("\n".join(facts_alone(payload_files, count)), flush=True)
            sizes = " · ".join(
                f"{name} {path.stat().st_size / 1024:.0f} KiB" for name, path in sorted(payload_files.items())
            )
            print(f"payloads: {sizes}", flush=True)
        if only in "observe":
            observation()
        if with_lab and only in "the lab":
            with lab_host(folder) as (_host, hosts):
                compare(whole_run("no-op tune on the lab", hosts, at_most=Cost(wall=1.5, cpu=2.0)), count)
        if with_lab and only in "unit":
            unit(folder, count)


def main(arguments: "list[str]") -> int:
    """Measure on a server of this machine's own and on a lab host."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--no-lab", action="store_true", help="leave out the emulated host")
    parts = ["native", "facts", "observe", "lab", "unit", "fleet"]
    parser.add_argument("--only", default="", choices=["", *parts], help="the only part to measure")
    parser.add_argument("--hosts", type=int, nargs="+", default=[10, 50, 200], help="sizes of the simulated fleet")
    options = parser.parse_args(arguments)
    try:
        measure(options.pairs, not options.no_lab, options.only)
        if options.only in "fleet":
            fleet(options.hosts)
    except (BenchError, sshd.SshdError, LabError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
