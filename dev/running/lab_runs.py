# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""On which day and commit each test passed that only `make test-lab` runs, and the pages that say so.

`make test-lab` writes the file, and `make generate` writes the pages from it and from the suites.
"""

from __future__ import annotations

import csv
import io
import re
import subprocess
from datetime import datetime, timezone
from pathlib import Path
from typing import Iterable, NamedTuple

from dev import suites
from dev.running import junit

FILE = "docs/lab_runs.csv"
HEAD = ("test", "date", "commit")
# A case of pytest, alone or in a step of molecule: `verify: molecule.default.tests.test_a::test_b[host]`.
CASE = re.compile(r"(?:^|[ :])((?:tests\.lab|molecule)(?:\.\w+)+)::(test_\w+)")
# A pointer of a page to such a test, and the row of a scenario.
POINTER = re.compile(r"real kernel(?: \([^)]*\))?: `([^`]+)`")
SCENARIO = re.compile(r"^(\| `(\w+)` \([^)]*\) \|) `(?:make|molecule)[^|`]*`(.*)$", re.MULTILINE)
PAGES = ("docs/evidence.md", "docs/kernels.md")


class Run(NamedTuple):
    """When a test passed last."""

    date: str  # 2026-11-27, UTC
    commit: str


def read(text: str) -> "dict[str, Run]":
    """Test, such as `tests/lab/runs/test_a.py::test_b` → when it passed last. The text is that of the file."""
    return {row["test"]: Run(row["date"], row["commit"]) for row in csv.DictReader(io.StringIO(text))}


def text_of(runs: "dict[str, Run]") -> str:
    """The text of the file."""
    return "".join(f"{','.join(row)}\n" for row in (HEAD, *((test, *runs[test]) for test in sorted(runs))))


def passed(cases: "Iterable[junit.Case]") -> "set[str]":
    """The tests that passed in each of their cases."""
    outcomes: "dict[str, set[str]]" = {}
    for case in cases:
        match = CASE.search(case.name)
        if match:
            outcomes.setdefault(f"{match[1].replace('.', '/')}.py::{match[2]}", set()).add(case.outcome)
    return {test for test, found in outcomes.items() if found == {"passed"}}


def commit(root: Path) -> str:
    """The commit that a working copy is; empty if it has changes, other than of what `record` writes."""
    changed = _git(root, "status", "--porcelain", "--", ".", *(f":!{name}" for name in (FILE, *PAGES)))
    return "" if changed else _git(root, "rev-parse", "--short=12", "HEAD")


def record(cases: "list[junit.Case]", root: Path, before: str) -> str:
    """Write what passed into the file and the pages of a working copy; a sentence that says what was written.

    `before` is its commit when the tests began.
    """
    if not before or commit(root) != before:
        return f"Nothing is recorded in {FILE}: the working copy had changes that were in no commit, or another commit"
    run = Run(datetime.now(timezone.utc).date().isoformat(), before)
    green = passed(cases)
    runs = {**read((root / FILE).read_text(encoding="utf-8")), **dict.fromkeys(green, run)}
    (root / FILE).write_text(text_of(runs), encoding="utf-8")
    for page in PAGES:
        (root / page).write_text(shown((root / page).read_text(encoding="utf-8"), runs), encoding="utf-8")
    return f"Recorded in {FILE}: {len(green)} tests passed on {run.date} at {run.commit}. Commit it, with its pages"


def shown(page: str, runs: "dict[str, Run]") -> str:
    """The page, in which each pointer and each scenario says when it runs, and with which result last."""
    page = POINTER.sub(lambda match: f"real kernel ({_when(match[1], runs)}): `{match[1]}`", page)
    return SCENARIO.sub(lambda match: f"{match[1]} `{_command(match[2])}`{match[3]}", page)


def _when(test: str, runs: "dict[str, Run]") -> str:
    file = test.partition("::")[0]
    if any(file in job.argv or file.startswith(f"molecule/{job.lane}/") for job in (*suites.lab(), *suites.molecule())):
        return "each commit"
    return "lab, last green on {} at {}".format(*runs[test]) if test in runs else "lab, not recorded yet"


def _command(scenario: str) -> str:
    """The quickest command that runs a scenario."""
    quick = {job.lane: job.quick for job in suites.molecule()}
    if scenario not in quick:
        return "make test-lab" if scenario in suites.LONG else f"molecule test --scenario-name {scenario}"
    return "make test" if quick[scenario] else "make test-all"


def _git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
