# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Seed faults one at a time: the tests must catch each. `python -m dev.mutate [--junit FILE] [WORD]`.

tests/mutations/*/*.toml holds the faults; a WORD runs only those whose name contains it:

    [swapped_sibling]
    file = "plugins/module_utils/_facts/topology.py"
    find = "min(siblings)"          # must occur exactly once
    replace = "max(siblings)"
    why = "the wrong thread of a core would be switched off"
    tests = ["tests/unit/facts"]    # the quick suite that must fail
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomllib

from dev import ROOT, tree
from dev.running import forked, junit

FAULTS = ROOT / "tests" / "mutations"
KEYS = {"file", "find", "replace", "why", "tests"}


class FaultError(Exception):
    """A sentence that says why a fault can't be seeded, or wasn't caught."""


@dataclass(frozen=True)
class Fault:
    """One fault, as data."""

    name: str
    file: str
    find: str
    replace: str
    why: str
    tests: "list[str]"


def faults(word: str) -> "list[Fault]":
    """All faults whose name contains the word, in the order of their files."""
    all_faults = []
    for path in sorted(FAULTS.rglob("*.toml")):
        data: "dict[str, Any]" = tomllib.loads(path.read_text(encoding="utf-8"))
        for name, entry in data.items():
            if set(entry) != KEYS:
                raise FaultError(f"{path.name}: {name} needs exactly the keys {', '.join(sorted(KEYS))}")
            all_faults.append(Fault(name, **entry))
    chosen = [fault for fault in all_faults if word in fault.name]
    if not chosen:
        raise FaultError(f"no fault has a name with {word!r} in it")
    return chosen


def working_copy(folder: Path) -> Path:
    """A copy of the project, with its own symlink tree, in which faults may be seeded.

    It is a git repository, because tests ask git for the project's files.
    """
    copy = folder / "project"
    for name in tree.files():
        target = copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target)
    link = copy / forked.COLLECTIONS / "ansible_collections/nearmetal/ec2"
    link.parent.mkdir(parents=True)
    link.symlink_to("../../../..")
    subprocess.run(["git", "init", "--quiet", str(copy)], check=True)
    return copy


class Slot:
    """A copy of the project in which one run of tests at a time takes place."""

    def __init__(self, folder: Path, original: Path) -> None:
        self.copy = Path(shutil.copytree(original, folder / "project", symlinks=True))
        self._original = original  # no tests run in it
        self._folder = folder
        self._runs = 0
        self._state = self._files()

    def start(self, tests: "list[str]") -> forked.Run:
        """Start the tests, up to the first failure."""
        collections = str(self.copy / forked.COLLECTIONS)
        variables = {
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": collections,
            "ANSIBLE_COLLECTIONS_PATH": collections,
            "NEARMETAL_SHARED": str(tree.shared() or self.copy / "absent"),
        }
        self._runs += 1
        folder = self._folder / str(self._runs)
        folder.mkdir()
        return forked.start(self.copy, tests, folder, variables)

    def clean(self) -> None:
        """Restore the copy: files that a run leaves could fail the tests for the next fault."""
        files = self._files()
        for name in files.keys() | self._state.keys():
            if files.get(name) == self._state.get(name):
                continue
            path = self.copy / name
            path.unlink(missing_ok=True)
            if name in self._state:
                path.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(self._original / name, path, follow_symlinks=False)

    def _files(self) -> "dict[str, tuple[int, int]]":
        """Size and time of each file, bytecode excepted: it stays for the next run."""
        files = {}
        start = len(f"{self.copy}/")
        for folder, folders, names in os.walk(self.copy):
            folders[:] = [name for name in folders if name != "__pycache__"]
            for name in names:
                path = f"{folder}/{name}"
                state = os.lstat(path)
                files[path[start:]] = (state.st_size, state.st_mtime_ns)
        return files


class Seeded:
    """A fault in a copy, and the tests that are to catch it."""

    def __init__(self, fault: Fault, slot: Slot, number: int) -> None:
        self.fault = fault
        self.started = time.monotonic()
        path = slot.copy / fault.file
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        if text.count(fault.find) != 1:
            complaint = f"occurs {text.count(fault.find)} times in {fault.file}, must be once"
            raise FaultError(f"`{fault.find.strip()}` {complaint}")
        absent = [name for name in fault.tests if not (slot.copy / name.partition("::")[0]).exists()]
        if absent:
            raise FaultError(f"no such tests: {', '.join(absent)}")
        times = path.stat()
        path.write_text(text.replace(fault.find, fault.replace), encoding="utf-8")
        # Each fault has another time, because Python matches bytecode to a source by time and size.
        os.utime(path, (times.st_atime, int(times.st_mtime) + 2 * number + 2))
        self.run = slot.start(fault.tests)

    def caught(self) -> str:
        """The test that caught the fault. Raises FaultError when none did, or the tests could not run."""
        outcome = self.run.end()
        if outcome.code == 0:
            raise FaultError(f"not caught: {self.fault.why}")
        if outcome.code != 1 or not outcome.failed:  # 1: tests failed; anything else: pytest could not run them
            raise FaultError(f"the tests could not run:\n{outcome.output[-2000:]}")
        return outcome.failed[0]


def intact(tests: "list[str]", slots: "list[Slot]") -> None:
    """Check that the tests that caught a fault pass without it. Raises FaultError when they don't."""
    shares = [tests[number :: len(slots)] for number in range(len(slots))]
    runs = [slot.start(share) for slot, share in zip(slots, shares) if share]
    for run in runs:
        os.waitpid(run.pid, 0)
    failed = [run.end() for run in runs if run.end().code]
    if failed:
        raise FaultError(f"the tests fail without any fault:\n{failed[0].output[-4000:]}")


class Judge:
    """Seeds faults, one at a time in each slot, and keeps their outcomes."""

    def __init__(self, slots: "list[Slot]") -> None:
        self.cases: "list[junit.Case]" = []
        self.killers: "set[str]" = set()  # the tests that caught a fault
        self._free = list(slots)
        self._running: "dict[int, tuple[Slot, Seeded]]" = {}

    def judge(self, chosen: "list[Fault]") -> None:
        """Seed each."""
        for number, fault in enumerate(chosen):
            if not self._free:
                self._end_of_a_run()
            try:
                seeded = Seeded(fault, self._free[-1], number)
            except FaultError as error:
                self._missed(fault, 0.0, error)
            else:
                self._running[seeded.run.pid] = (self._free.pop(), seeded)
        while self._running:
            self._end_of_a_run()

    def _end_of_a_run(self) -> None:
        pid, _status = os.wait()
        slot, seeded = self._running.pop(pid)
        self._free.append(slot)
        seconds = time.monotonic() - seeded.started
        slot.clean()
        try:
            killer = seeded.caught()
        except FaultError as error:
            self._missed(seeded.fault, seconds, error)
        else:
            self.killers.add(killer)
            self.cases.append(junit.Case("mutations", seeded.fault.name, "passed", seconds))
            print(f"  ✓ {seeded.fault.name:<32} {seconds:4.1f} s  {killer}", flush=True)

    def _missed(self, fault: Fault, seconds: float, error: FaultError) -> None:
        self.cases.append(junit.Case("mutations", fault.name, "failed", seconds, str(error)))
        print(f"  ✗ {fault.name:<32} {error}", flush=True)


def main(arguments: "list[str]") -> int:
    """Print a table; 1 when a fault wasn't caught or could not be seeded."""
    parser = argparse.ArgumentParser(prog="make mutate")
    parser.add_argument("--junit", type=Path)
    parser.add_argument("word", nargs="?", default="")
    options = parser.parse_args(arguments)
    try:
        chosen = faults(options.word)
        with tempfile.TemporaryDirectory(prefix="nm-mutate-") as folder:
            original = working_copy(Path(folder) / "original")
            count = min(os.cpu_count() or 1, len(chosen))
            slots = [Slot(Path(folder) / str(number), original) for number in range(count)]
            judge = Judge(slots)
            judge.judge(chosen)
            intact(sorted(judge.killers), slots)
        cases = judge.cases
    except FaultError as error:
        print(error, file=sys.stderr)
        return 1
    if options.junit:
        junit.write(options.junit, "mutations", cases)
    missed = sum(case.outcome == "failed" for case in cases)
    print(f"{len(cases) - missed} of {len(cases)} faults caught")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
