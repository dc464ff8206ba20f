# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Seed faults one at a time: the tests must catch each. `python -m dev.mutate [--junit FILE] [WORD]`.

tests/mutations/*.toml holds the faults; a WORD runs only those whose name contains it:

    [settled_entry_forgotten]
    file = "plugins/module_utils/_memory/journal.py"
    find = "if not held"            # must occur exactly once
    replace = "if held"
    why = "a successful run would lose the originals"
    tests = ["tests/unit/memory"]   # the quick tests that must fail
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

from dev import ROOT, tree
from dev.running import junit

FAULTS = ROOT / "tests" / "mutations"
KEYS = {"file", "find", "replace", "why", "tests"}
COLLECTIONS = Path(".ansible/collections")
SECONDS = 600  # `timeout` ends the tests and all that they started, even if this process is killed
PYTEST = (sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--hypothesis-profile=caught")
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", re.MULTILINE)


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
    for path in sorted(FAULTS.glob("*.toml")):
        data: "dict[str, Any]" = tomllib.loads(path.read_text(encoding="utf-8"))
        for name, entry in data.items():
            if set(entry) != KEYS:
                raise FaultError(f"{path.name}: {name} needs exactly the keys {', '.join(sorted(KEYS))}")
            all_faults.append(Fault(name, **entry))
    chosen = [fault for fault in all_faults if word in fault.name]
    if not chosen:
        raise FaultError(f"no fault has a name with {word!r} in it")
    return chosen


def working_copy(copy: Path) -> None:
    """Make a copy of the project, with its own symlink tree.

    It is a git repository, because tests ask git for the project's files.
    """
    for name in tree.files():
        target = copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target)
    link = copy / COLLECTIONS / "ansible_collections/nearmetal/ec2"
    link.parent.mkdir(parents=True)
    link.symlink_to("../../../..")
    subprocess.run(["git", "init", "--quiet", str(copy)], check=True)


def surroundings(copy: Path) -> "dict[str, str]":
    """The environment in which Python and Ansible find the collection in a copy of the project."""
    collections = str(copy / COLLECTIONS)
    shared = str(tree.shared() or copy / "absent")
    found = {"PYTHONPATH": collections, "ANSIBLE_COLLECTIONS_PATH": collections, "NEARMETAL_SHARED": shared}
    return {**os.environ, **found}


def run_tests(copy: Path, tests: "list[str]") -> "subprocess.CompletedProcess[str]":
    """Run the tests in a copy of the project, up to the first failure."""
    return subprocess.run(
        ["timeout", str(SECONDS), *PYTEST, f"--basetemp={copy}.tests", *tests],
        check=False,
        cwd=copy,
        env=surroundings(copy),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def seed(fault: Fault, copy: Path) -> None:
    """Write the fault into the copy. Raises FaultError when it doesn't fit."""
    path = copy / fault.file
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if text.count(fault.find) != 1:
        complaint = f"occurs {text.count(fault.find)} times in {fault.file}, must be once"
        raise FaultError(f"`{fault.find.strip()}` {complaint}")
    absent = [name for name in fault.tests if not (copy / name.partition("::")[0]).exists()]
    if absent:
        raise FaultError(f"no such tests: {', '.join(absent)}")
    path.unlink()  # the original has the same inode
    path.write_text(text.replace(fault.find, fault.replace), encoding="utf-8")


def catch(fault: Fault, original: Path) -> str:
    """The test that catches the fault. Raises FaultError when none does, or the tests can't run."""
    copy = original.with_name(fault.name)
    try:
        shutil.copytree(original, copy, symlinks=True, copy_function=os.link)
        seed(fault, copy)
        done = run_tests(copy, fault.tests)
    finally:
        for folder in (copy, Path(f"{copy}.tests")):
            shutil.rmtree(folder, ignore_errors=True)
    failed = _FAILED.findall(done.stdout)
    if done.returncode == 0:
        raise FaultError(f"not caught: {fault.why}")
    if done.returncode != 1 or not failed:  # 1: tests failed; anything else: pytest could not run them
        raise FaultError(f"the tests could not run:\n{done.stdout[-2000:]}")
    return str(failed[0])


def judge(fault: Fault, original: Path) -> "tuple[junit.Case, str]":
    """The outcome of a fault, and the test that caught it."""
    started = time.monotonic()
    try:
        killer = catch(fault, original)
    except FaultError as error:
        print(f"  ✗ {fault.name:<32} {error}", flush=True)
        return junit.Case("mutations", fault.name, "failed", time.monotonic() - started, str(error)), ""
    seconds = time.monotonic() - started
    print(f"  ✓ {fault.name:<32} {seconds:4.1f} s  {killer}", flush=True)
    return junit.Case("mutations", fault.name, "passed", seconds), killer


def judge_all(chosen: "list[Fault]") -> "list[junit.Case]":
    """The outcome of each fault. Raises FaultError when a test that caught one fails without it, too."""
    with tempfile.TemporaryDirectory(prefix="nm-mutate-") as folder:
        original = Path(folder) / "original"
        working_copy(original)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            judged = list(pool.map(lambda fault: judge(fault, original), chosen))
        killers = sorted({killer for _case, killer in judged if killer})
        done = run_tests(original, killers) if killers else None
    if done and done.returncode:
        raise FaultError(f"the tests fail without any fault:\n{done.stdout[-4000:]}")
    return [case for case, _killer in judged]


def main(arguments: "list[str]") -> int:
    """Print a table; 1 when a fault wasn't caught or could not be seeded."""
    parser = argparse.ArgumentParser(prog="make mutate")
    parser.add_argument("--junit", type=Path)
    parser.add_argument("word", nargs="?", default="")
    options = parser.parse_args(arguments)
    try:
        cases = judge_all(faults(options.word))
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
