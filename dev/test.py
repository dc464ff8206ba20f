# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run suites and close with one line of counts: `python -m dev.test [--quick] [suite …]`.

The counts come from the JUnit files in build/junit and are compared with tests/suites.toml.
A skipped test counts as a failed one.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tomllib

from dev import ROOT, suites, tree
from dev.programs import pythons
from dev.running import junit, lab_runs
from dev.running.output import follow

SAY = threading.Lock()
# Suites that start as many tests at a time as there are cores.
FILLS_EVERY_CORE = ("mutations", "mutants")
# Suites that need a browser or further Pythons, which some distributions lack. The closing lines name what is absent.
WITHOUT = {
    "browser": "Chromium absent: the report's page was not judged",
    "monitoring": "Prometheus absent: docs/monitoring was not tried",
    "programs": "not root, or a server absent: not every program judged a tuned host itself",
    "examples": "cloud-init, HAProxy, Packer or npm absent: no other program read some of docs/examples, or a profile",
}
NOT_EVERYWHERE = (*WITHOUT, "newest", "cores", "between")


@dataclass(frozen=True)
class Done:
    """A job that ended, and what its JUnit file says."""

    job: suites.Job
    cases: "list[junit.Case]"
    seconds: float
    cpu: float = 0.0  # CPU seconds of the job and of all processes that it waited for

    def count(self, outcome: str) -> int:
        return sum(case.outcome == outcome for case in self.cases)

    @property
    def good(self) -> bool:
        return bool(self.cases) and self.count("passed") == len(self.cases)


def _end(process: "subprocess.Popen[bytes]") -> float:
    """Wait for the process; the CPU seconds that it and its children took."""
    if process.stdout:
        process.stdout.close()
    _pid, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


def run(job: suites.Job) -> Done:
    """Run one job to its end, and remove its temporary files."""
    started = time.monotonic()
    where = job.environment.get("TMPDIR")
    with tempfile.TemporaryDirectory(prefix="nm-", dir=where, ignore_cleanup_errors=True) as own:
        Path(own).chmod(0o711)  # some tests run programs as another user
        process = subprocess.Popen(
            job.argv,
            cwd=ROOT,
            env={**job.environment, "TMPDIR": own},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        try:
            output = follow(process, suites.LOGS / f"{job.name}.log", job.live)
            cpu = _end(process)
        except KeyboardInterrupt:
            process.wait()
            raise
    seconds = time.monotonic() - started
    if job.own_junit:
        cases = junit.read(job.junit)
        if process.returncode and all(case.outcome == "passed" for case in cases):
            cases.append(junit.Case(job.name, f"exit code {process.returncode}", "failed", text=output[-2000:]))
    else:
        outcome = "failed" if process.returncode else "passed"
        cases = [junit.Case(job.suite, job.name, outcome, seconds, output if process.returncode else "")]
        junit.write(job.junit, job.name, cases)
    done = Done(job, cases, seconds, cpu)
    _say(done, output)
    return done


def _say(done: Done, output: str) -> None:
    """Print a line per job, and the end of its output when it failed."""
    counts = f"{done.count('passed')} passed"
    for outcome in ("failed", "skipped"):
        if done.count(outcome):
            counts += f", {done.count(outcome)} {outcome}"
    with SAY:
        times = f"{done.seconds:6.1f} s {done.cpu:6.1f} s of CPU"
        print(f"  {'✓' if done.good else '✗'} {done.job.name:<22} {counts:<24} {times}", flush=True)
        if not done.good and not done.job.live:
            print("".join(f"      {line}\n" for line in output.rstrip().splitlines()[-40:]), end="", flush=True)


def run_all(jobs: "list[suites.Job]") -> "list[Done]":
    """Run quiet jobs in parallel, beside them emulated hosts one after the other; then suites that use all cores."""
    hosts = [job for job in jobs if job.live and job.suite not in FILLS_EVERY_CORE]
    with ThreadPoolExecutor(max_workers=max(2, min(os.cpu_count() or 1, 4))) as pool:
        on_hosts = pool.submit(_in_turn, hosts)
        results = list(pool.map(run, [job for job in jobs if not job.live]))
    return results + on_hosts.result() + _in_turn([job for job in jobs if job.suite in FILLS_EVERY_CORE])


def _in_turn(jobs: "list[suites.Job]") -> "list[Done]":
    results = []
    for job in jobs:
        print(f"  · {job.name}", flush=True)
        results.append(run(job))
    return results


def shortfalls(
    results: "list[Done]", numbers: "dict[str, Any]", groups: "list[str]", quick: bool = False
) -> "list[str]":
    """Sentences about suites that ran too few tests, and about suites without numbers."""
    keys = ["minimum_quick"] * quick + ["minimum_with_data"] * (tree.shared() is not None) + ["minimum"]
    short = [f"{name}: no numbers in tests/suites.toml" for name in groups if name not in numbers]
    for group in groups:
        numbers_of = numbers.get(group, {})
        minimum = next((numbers_of[key] for key in keys if key in numbers_of), 0)
        lanes: "dict[str, int]" = {}
        for done in results:
            if done.job.suite == group:
                # Those that failed count too, because each fails the run by itself.
                lanes[done.job.lane] = lanes.get(done.job.lane, 0) + len(done.cases)
        if not lanes and minimum:
            short.append(f"{group}: nothing ran, at least {minimum} must")
        for lane, ran in lanes.items():
            if ran < minimum:
                short.append(f"{group} {lane}: {ran} ran, at least {minimum} must".replace(" :", ":"))
    return short


def over_share(results: "list[Done]", numbers: "dict[str, Any]", groups: "list[str]") -> "list[str]":
    """Sentences about suites that took more minutes than their share. They fail nothing, because machines differ."""
    over = []
    for group in groups:
        seconds = sum(done.seconds for done in results if done.job.suite == group)
        share = numbers.get(group, {}).get("minutes", 0)
        if seconds > share * 60:
            over.append(f"{group} took {seconds / 60:.1f} min, and its share is {share} min")
    return over


def recorded_machines(results: "list[Done]") -> str:
    """How many of the recorded machines were tested, by the names of the tests that passed."""
    folder = tree.shared()
    if folder is None:
        return "recorded machines absent (NEARMETAL_SHARED)"
    wanted = {str(path.parent.relative_to(folder / "data/machines")) for path in _expected(folder)}
    lanes: "dict[str, set[str]]" = {}
    for done in results:
        if done.job.suite == "target":
            names = {case.name.partition("[")[2].rstrip("]") for case in done.cases if case.outcome == "passed"}
            lanes[done.job.lane] = wanted & names
    judged = set.intersection(*lanes.values()) if lanes else set()
    return f"{len(judged)} of {len(wanted)} recorded machines"


def _expected(folder: "Any") -> "list[Any]":
    return sorted((folder / "data" / "machines").glob("**/expected.json"))


def cpu_seconds(results: "list[Done]") -> str:
    """The CPU time of each suite: `CPU seconds: lint 90, target 160`."""
    cost: "dict[str, float]" = {}
    for done in results:
        cost[done.job.suite] = cost.get(done.job.suite, 0.0) + done.cpu
    return f"CPU seconds: {', '.join(f'{suite} {seconds:.0f}' for suite, seconds in cost.items())}"


def _of_tools(results: "list[Done]") -> str:
    """The count of the suites whose tools have no JUnit file of their own: `lint:8 build:2`."""
    counts: "dict[str, int]" = {}
    for done in results:
        if not done.job.own_junit:
            counts[done.job.suite] = counts.get(done.job.suite, 0) + done.count("passed")
    return " ".join(f"{suite}:{count}" for suite, count in counts.items())


def _quick(jobs: "list[suites.Job]", day: str) -> "list[suites.Job]":
    """Those of the jobs that `make test` runs, with the types and lives of the day."""
    return [replace(job, environment={**job.environment, suites.DAY: day}) for job in jobs if job.quick]


def main(arguments: "list[str]") -> int:
    """Run the named suites (all without a name), or their quick jobs; 0 when nothing failed and no suite fell short."""
    known = {**suites.GROUPS, **suites.ON_REQUEST}
    parser = argparse.ArgumentParser("python -m dev.test", description=__doc__, epilog=f"suites: {', '.join(known)}")
    parser.add_argument("suite", nargs="*", help="without a name: all of `make test-all`, or of `make test`")
    parser.add_argument("--quick", action="store_true", help="what `make test` runs of the suites")
    parsed = parser.parse_args(arguments)
    arguments, quick = parsed.suite, parsed.quick
    unknown = [name for name in arguments if name not in known]
    if unknown:
        print(f"No such suite: {', '.join(unknown)}. There are: {', '.join(known)}", file=sys.stderr)
        return 2
    started = time.monotonic()
    for folder in (suites.JUNIT, suites.LOGS):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    numbers = tomllib.loads((ROOT / "tests" / "suites.toml").read_text(encoding="utf-8"))
    day = os.environ.get(suites.DAY) or str(int(time.time() // 86400))
    jobs = {group: known[group]() for group in arguments or suites.GROUPS}
    if quick:
        jobs = {group: chosen for group, made in jobs.items() if (chosen := _quick(made, day)) or not made}
    wanted, jobs = jobs, {group: [job for job in made if job.present()] for group, made in jobs.items()}
    without = [group for group, made in jobs.items() if len(made) < len(wanted[group])]
    groups = [group for group in jobs if jobs[group] or group not in NOT_EVERYWHERE]
    commit = lab_runs.commit(ROOT)
    results = run_all([job for group in groups for job in jobs[group]])
    short = shortfalls(results, numbers, groups, quick)
    if "long" in groups:
        cases = [case for done in results if done.job.suite == "long" for case in done.cases]
        print(lab_runs.record(cases, ROOT, commit))
    for line in [f"Slow, which fails nothing: {text}" for text in over_share(results, numbers, groups)]:
        print(line)
    for line in short:
        print(f"Below its minimum, which counts as 1 failed: {line}")
    passed = sum(done.count("passed") for done in results)
    failed = sum(len(done.cases) for done in results) - passed + len(short)
    print(cpu_seconds(results))
    every_core = (*suites.CORES, *((f".venv-core-{core}", core) for core in pythons.CORES))
    absent = [version for version in pythons.TARGETS if version not in pythons.find()]
    parts = [
        " ".join(f"{done.job.name}:{done.count('passed')}" for done in results if done.job.own_junit),
        _of_tools(results),
        f"Pythons absent: {' '.join(absent) or 'none'}",
        ", ".join(f"ansible-core absent: {core}" for venv, core in every_core if not (ROOT / venv).is_dir()),
        recorded_machines(results),
        *(sentence for group, sentence in WITHOUT.items() if group in without),
        f"types and lives of {suites.DAY}={day}" if quick else "",
        f"{(time.monotonic() - started) / 60:.1f} min",
    ]
    print(" · ".join(part for part in parts if part))
    print(f"{passed} passed, {failed} failed", flush=True)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
