# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Seed faults one at a time: the tests must catch each. `python -m dev.mutate [--junit FILE] [WORD]`.

tests/mutations/*.toml holds the faults; a WORD runs only those whose name contains it:

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
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomllib

from dev import ROOT, junit, tree

FAULTS = ROOT / "tests" / "mutations"
# A test with parameters stands for all of them.
FAILED = re.compile(r"^(?:FAILED|ERROR) (?P<test>[^\s\[]+)", re.M)
KEYS = {"file", "find", "replace", "why", "tests"}


class FaultError(Exception):
    """A fault that can't be seeded: what is wrong with its description."""


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
    found = []
    for path in sorted(FAULTS.glob("*.toml")):
        data: "dict[str, Any]" = tomllib.loads(path.read_text(encoding="utf-8"))
        for name, entry in data.items():
            if set(entry) != KEYS:
                raise FaultError(f"{path.name}: {name} needs exactly the keys {', '.join(sorted(KEYS))}")
            found.append(Fault(name, **entry))
    chosen = [fault for fault in found if word in fault.name]
    if not chosen:
        raise FaultError(f"no fault has a name with {word!r} in it")
    return chosen


def working_copy(folder: Path) -> Path:
    """A copy of the project, with its own symlink tree, in which a fault may be seeded."""
    copy = folder / "project"
    for name in tree.files():
        target = copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target)
    link = copy / ".ansible/collections/ansible_collections/nearmetal/ec2"
    link.parent.mkdir(parents=True)
    link.symlink_to("../../../..")
    return copy


def suite(copy: Path, tests: "list[str]") -> "subprocess.CompletedProcess[str]":
    """The tests in the copy, up to the first failure."""
    absent = [name for name in tests if not (copy / name.partition("::")[0]).exists()]
    if absent:
        raise FaultError(f"no such tests: {', '.join(absent)}")
    shared = tree.shared()
    variables = {
        **os.environ,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": str(copy / ".ansible/collections"),
        "ANSIBLE_COLLECTIONS_PATH": str(copy / ".ansible/collections"),
        "NEARMETAL_SHARED": str(shared or copy / "absent"),
    }
    # Of its own: pytest clears a folder that several runs share, and stumbles over another that does so too.
    with tempfile.TemporaryDirectory(prefix="nm-mutate-") as own:
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"--basetemp={own}/tests", *tests],
            cwd=copy,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )


def caught(fault: Fault) -> str:
    """Which test caught it. FaultError when none did, or when it could not be seeded."""
    with tempfile.TemporaryDirectory(prefix="nm-mutate-") as folder:
        copy = working_copy(Path(folder))
        path = copy / fault.file
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        if text.count(fault.find) != 1:
            found = f"occurs {text.count(fault.find)} times in {fault.file}, must be once"
            raise FaultError(f"`{fault.find.strip()}` {found}")
        path.write_text(text.replace(fault.find, fault.replace), encoding="utf-8")
        done = suite(copy, fault.tests)
    if done.returncode == 0:
        raise FaultError(f"not caught: {fault.why}")
    if done.returncode != 1:  # 1: tests failed; anything else: pytest itself could not run them
        raise FaultError(f"the tests could not run:\n{done.stdout[-2000:]}")
    failed = FAILED.search(done.stdout)
    if failed is None:
        raise FaultError(f"pytest doesn't say what failed:\n{done.stdout[-2000:]}")
    return failed["test"]


def intact(tests: "set[str]") -> None:
    """The tests that caught a fault must pass without it: else their failure would prove nothing."""
    with tempfile.TemporaryDirectory(prefix="nm-mutate-") as folder:
        done = suite(working_copy(Path(folder)), sorted(tests))
    if done.returncode:
        raise FaultError(f"the tests fail without any fault:\n{done.stdout[-4000:]}")


def judge(fault: Fault, killers: "set[str]") -> junit.Case:
    """Seed the fault and report the outcome; the test that caught it is added to `killers`."""
    started = time.monotonic()
    try:
        by = caught(fault)
    except FaultError as error:
        case = junit.Case("mutations", fault.name, "failed", time.monotonic() - started, str(error))
        print(f"  ✗ {fault.name:<32} {error}", flush=True)
    else:
        killers.add(by)
        case = junit.Case("mutations", fault.name, "passed", time.monotonic() - started)
        print(f"  ✓ {fault.name:<32} {case.seconds:4.1f} s  {by}", flush=True)
    return case


def main(arguments: "list[str]") -> int:
    """Print a table; 1 when a fault slipped through or could not be seeded."""
    parser = argparse.ArgumentParser(prog="make mutate")
    parser.add_argument("--junit", type=Path)
    parser.add_argument("word", nargs="?", default="")
    options = parser.parse_args(arguments)
    killers: "set[str]" = set()
    try:
        chosen = faults(options.word)
        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            cases = list(pool.map(lambda fault: judge(fault, killers), chosen))
        if killers:
            intact(killers)
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
