# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What passed in `make test-lab` is written down for the commit on which it ran."""

from __future__ import annotations

import shutil
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

from dev import ROOT
from dev.running import junit, lab_runs
from dev.scenario import Steps

OLD = "tests/lab/runs/test_old.py::test_a,2026-01-02,aaaaaaaaaaaa\n"
CASES = [
    junit.Case("long", "tests.lab.runs.test_old::test_a", "failed"),
    junit.Case("long", "tests.lab.runs.test_b::test_c[1]", "passed"),
    junit.Case("long", "tests.lab.runs.test_b::test_c[2]", "passed"),
    junit.Case("long", "tests.lab.runs.test_b::test_d[1]", "passed"),
    junit.Case("long", "tests.lab.runs.test_b::test_d[2]", "failed"),
    junit.Case("molecule-e", "molecule-e::converge", "passed"),
    junit.Case("molecule-e", "molecule-e::verify: molecule.shared.e.tests.test_e::test_e[ansible:/h]", "passed"),
    junit.Case("molecule-e", "molecule-e::verify 2: molecule.shared.e.tests.test_e::test_f[ansible:/h]", "skipped"),
]


def git(root: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", *words]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout.strip()


def working_copy(root: Path) -> Path:
    (root / "docs").mkdir(parents=True)
    (root / "docs/evidence.md").write_text("real kernel: `molecule/shared/e/tests/test_e.py::test_e`\n")
    (root / "docs/kernels.md").write_text("")
    (root / "docs/lab_runs.csv").write_text(f"test,date,commit\n{OLD}")
    git(root, "init", "--quiet")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "first")
    return root


def test_what_passed_is_recorded_and_what_failed_keeps_its_last_green_day(tmp_path: Path) -> None:
    root = working_copy(tmp_path)
    commit, before = git(root, "rev-parse", "HEAD")[:12], datetime.now(timezone.utc).date()
    assert "2 tests passed" in lab_runs.record(CASES, root, lab_runs.commit(root))
    rows = (root / "docs/lab_runs.csv").read_text().splitlines()
    day = rows[1].split(",")[1]
    assert before.isoformat() <= day <= datetime.now(timezone.utc).date().isoformat()
    assert rows == [
        "test,date,commit",
        f"molecule/shared/e/tests/test_e.py::test_e,{day},{commit}",
        f"tests/lab/runs/test_b.py::test_c,{day},{commit}",
        OLD.strip(),
    ]
    assert f"real kernel (lab, last green on {day} at {commit}): `molecule" in (root / "docs/evidence.md").read_text()
    assert "2 tests passed" in lab_runs.record(CASES, root, commit), "what it wrote itself is no change"


def test_a_run_of_what_is_in_no_commit_is_not_recorded(tmp_path: Path) -> None:
    root = working_copy(tmp_path)
    before = lab_runs.commit(root)
    (root / "new.py").write_text("")
    assert "Nothing is recorded" in lab_runs.record(CASES, root, lab_runs.commit(root))
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "made while the tests ran")
    assert "Nothing is recorded" in lab_runs.record(CASES, root, before)
    assert (root / "docs/lab_runs.csv").read_text() == f"test,date,commit\n{OLD}"


def test_a_test_of_a_scenario_has_the_name_that_pages_call_it_by(tmp_path: Path) -> None:
    """As molecule calls pytest: in the scenario's folder, with the path of a folder beside it."""
    for folder in ("molecule/a", "molecule/shared/tests"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "molecule/shared/tests/test_b.py").write_text("def test_c(): ...\n")
    steps = Steps("molecule-a", tmp_path / "checks.xml")
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--junitxml={steps.checks}"]
    folder = tmp_path / "molecule/a"
    subprocess.run([*words, f"{folder}/../shared/tests/test_b.py"], cwd=folder, check=True, capture_output=True)
    steps.read("INFO     [a > verify] Executed: Successful\n")
    junit.write(tmp_path / "molecule-a.xml", steps.suite, steps.cases)
    assert lab_runs.passed(junit.read(tmp_path / "molecule-a.xml")) == {"molecule/shared/tests/test_b.py::test_c"}
