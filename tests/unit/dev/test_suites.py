# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""No test is left out by the way in which the suites share them among Pythons, ansible-cores and commands."""

from __future__ import annotations

import re
import sys
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Dict, Iterable, List, Set

import pytest

from dev import ROOT, mutate, sanity, suites, test
from dev.programs import chromium, pythons, unpacked
from dev.running import junit
from tests.support.sequences.tenth import tenth

GOOD = junit.Case("suite", "name", "passed")


def run_by(*groups: str) -> Set[str]:
    """The test files that the jobs of these suites are given, folders included."""
    known = {**suites.GROUPS, **suites.ON_REQUEST}
    words = {word for group in groups for job in known[group]() for word in job.argv if word.startswith("tests/")}
    return {name for word in words for name in files_of(ROOT / word)}


def files_of(path: Path) -> Iterable[str]:
    found = path.rglob("test_*.py") if path.is_dir() else [path]
    return {file.relative_to(ROOT).as_posix() for file in found}


def test_make_test_all_runs_every_file_of_unit_tests() -> None:
    assert run_by("target", "controller", "random") == set(files_of(ROOT / "tests/unit"))


def ran_by(monkeypatch: pytest.MonkeyPatch, folder: Path, *words: str) -> List[suites.Job]:
    """The jobs that `python -m dev.test` runs; each has enough tests, and all pass."""
    jobs: List[suites.Job] = []

    def run_all(chosen: List[suites.Job]) -> List[test.Done]:
        jobs.extend(chosen)
        # A tool without a JUnit file of its own is one test.
        return [test.Done(job, [GOOD] * (5000 if job.own_junit else 1), 0.0) for job in chosen]

    for name in ("JUNIT", "LOGS"):
        monkeypatch.setattr(suites, name, folder / name)
    monkeypatch.setattr(test, "run_all", run_all)
    monkeypatch.setattr(chromium, "present", lambda: True)
    monkeypatch.setattr(unpacked.Packages, "present", lambda self: True)
    assert test.main(list(words)) == 0
    return jobs


def test_make_test_all_runs_every_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NEARMETAL_DAY", "7")
    jobs = ran_by(monkeypatch, tmp_path)
    assert [job.name for job in jobs] == [job.name for group in suites.GROUPS.values() for job in group()]
    assert not any("NEARMETAL_DAY" in job.environment for job in jobs), "all types and lives"
    assert re.fullmatch(r"\d+ passed, 0 failed", capsys.readouterr().out.splitlines()[-1])


def test_make_test_runs_a_part_of_each_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NEARMETAL_DAY", "7")
    jobs = ran_by(monkeypatch, tmp_path, "--quick")
    found: Dict[str, List[str]] = {}
    for job in jobs:
        found.setdefault(job.suite, []).append(job.name)
    versions, cores = list(pythons.find()), [job.lane for job in suites.cores()]
    assert found == {
        "gates": ["gates"],
        "controller": ["controller-2.19-first", "controller-2.19-second"],
        "cores": [f"cores-{cores[0]}", f"cores-{cores[-1]}"],
        "sanity": [suites.sanity()[-1].name],
        "lint": ["ruff-check", "ruff-format", "mypy", "yamllint", "shellcheck"],
        "target": [f"target-{versions[0]}"],
        "random": ["random-lives"],
        "build": ["tarball"],
        "molecule": ["molecule-default"],
    }
    assert {job.environment["NEARMETAL_DAY"] for job in jobs} == {"7"}
    *_rest, counts, last = capsys.readouterr().out.splitlines()
    assert "types and lives of NEARMETAL_DAY=7" in counts
    assert re.fullmatch(r"\d+ passed, 0 failed", last)


def test_without_a_day_it_is_today(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEARMETAL_DAY", raising=False)
    before = datetime.now(timezone.utc)
    (job,) = ran_by(monkeypatch, tmp_path, "--quick", "gates")
    days = [
        str((when - datetime(1970, 1, 1, tzinfo=timezone.utc)).days) for when in (before, datetime.now(timezone.utc))
    ]
    assert job.environment["NEARMETAL_DAY"] in days


def test_ten_days_have_all_types_and_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEARMETAL_DAY", raising=False)
    assert tenth(range(305)) == list(range(305))
    found: List[int] = []
    for day in range(20784, 20794):
        monkeypatch.setenv("NEARMETAL_DAY", str(day))
        assert tenth(range(305)) == tenth(range(305))
        assert len(tenth(range(305))) in (30, 31)
        found += tenth(range(305))
    assert sorted(found) == list(range(305))


def test_no_half_of_the_controller_tests_loses_its_folders() -> None:
    first, second = ({word for word in job.argv if word.startswith("tests/")} for job in suites.controller())
    assert first
    assert second
    assert not first & second
    assert all(any(name.startswith(folder) for name in first) for folder in suites.FIRST_HALF)


def test_every_file_that_starts_ansible_runs_with_the_newest_too() -> None:
    starting = {
        name
        for name in run_by("controller")
        if any(word in (ROOT / name).read_text("utf-8") for word in ('"ansible-playbook"', "simulated import"))
    }
    elsewhere = {name for name in run_by("controller") if name.startswith(suites.OLDEST_CORE_ALONE)}
    assert starting - elsewhere <= set(suites.differing_tests())
    assert set(suites.MODULE_CONTRACT) <= run_by("controller")


def test_what_runs_with_the_newest_ansible_imports_only_what_is_installed_beside_it() -> None:
    locked = (ROOT / "requirements/newest.txt").read_text("utf-8")
    installed = set(re.findall(r"(?m)^([a-z0-9_.-]+)==", locked))
    distributions = metadata.packages_distributions()
    for name in suites.differing_tests():
        modules = set(re.findall(r"(?m)^(?:import|from) (\w+)", (ROOT / name).read_text("utf-8")))
        for module in sorted(modules & set(distributions)):
            assert installed & {re.sub("[-_.]+", "-", each.lower()) for each in distributions[module]}, (name, module)


def test_every_lab_test_and_scenario_is_in_make_test_all_or_in_make_test_lab() -> None:
    lab = {name for name in run_by("lab", "long") if not name.startswith("tests/unit/")}  # longer runs of unit tests
    assert lab == set(files_of(ROOT / "tests/lab"))
    scenarios = {path.parent.name for path in ROOT.glob("molecule/*/molecule.yml")}
    assert {job.lane for job in suites.molecule()} == {"default", "hotplug", "reboot"}
    assert {job.lane for job in suites.long() if job.lane} == scenarios - {"default", "hotplug", "reboot"} - {
        *suites.BY_NAME
    }


def test_the_oldest_and_the_newest_python_run_everything_and_those_between_what_they_may_do_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pythons, "find", lambda: dict.fromkeys(("3.8", "3.9", "3.10", "3.14"), Path()))
    assert [job.lane for job in suites.target()] == ["3.8", "3.14"]
    assert [job.lane for job in suites.between()] == ["3.9", "3.10"]
    assert all((ROOT / name).exists() for name in (*suites.BETWEEN_TESTS, *suites.HOST_TESTS, *suites.RANDOM_TESTS))
    monkeypatch.setattr(pythons, "find", lambda: {"3.11": Path()})
    assert [job.lane for job in suites.target()] == ["3.11"]
    assert suites.between() == []


def test_sanity_compiles_with_every_python_and_imports_with_the_oldest_and_the_newest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pythons, "find", lambda: dict.fromkeys(("3.8", "3.9", "3.13", "3.14"), Path()))
    without = ["--skip-test", "import"]
    ends = [["--test", "import", "--python", version] for version in ("3.8", "3.13")]
    assert sanity.runs([]) == [without, *ends], "ansible-core 2.19 knows no Python 3.14"
    monkeypatch.setattr(pythons, "find", lambda: {"3.11": Path()})
    assert sanity.runs([]) == [without, ["--test", "import", "--python", "3.11"]]
    assert sanity.runs(["--python", "3.14"]) == [["--python", "3.14"]]


def test_the_cost_of_a_job_is_that_of_all_its_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("JUNIT", "LOGS"):
        monkeypatch.setattr(suites, name, tmp_path)
    busy = "import os, time\nwhile sum(os.times()[:2]) < 0.2: pass"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}], check=True)"
    done = [test.run(suites.Job("lint", "busy", [sys.executable, "-c", child])) for _twice in range(2)]
    assert [job.good for job in done] == [True, True]
    assert all(job.cpu >= 0.2 for job in done)
    assert test.cpu_seconds(done) == f"CPU seconds: lint {sum(job.cpu for job in done):.0f}"
    assert "busy" in capsys.readouterr().out


def test_temporary_files_of_a_job_are_removed_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    places = {name: tmp_path / name for name in ("JUNIT", "LOGS", "memory")}
    for place in places.values():
        place.mkdir()
    monkeypatch.setattr(suites, "JUNIT", places["JUNIT"])
    monkeypatch.setattr(suites, "LOGS", places["LOGS"])
    leaves = "import os, tempfile as t; print(t.mkdtemp(), oct(os.stat(t.gettempdir()).st_mode)); raise SystemExit(1)"
    environment = {"TMPDIR": str(places["memory"])}
    done = test.run(suites.Job("lint", "leaves", [sys.executable, "-c", leaves], environment=environment))
    assert done.cases[0].text.startswith(str(places["memory"]))
    assert done.cases[0].text.endswith("0o40711\n"), "another user, whom a test becomes, reaches its files"
    assert list(places["memory"].iterdir()) == []
    assert "leaves" in capsys.readouterr().out


def test_emulated_hosts_take_turns_beside_the_quiet_suites_and_the_seeded_faults_come_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order = []

    def ran(job: suites.Job) -> test.Done:
        order.append(job.name)
        return test.Done(job, [], 0.0)

    monkeypatch.setattr(test, "run", ran)
    jobs = [
        suites.Job("mutations", "mutations", [], live=True),
        *(suites.Job("molecule", name, [], live=True) for name in ("first", "second")),
        suites.Job("lint", "lint", []),
    ]
    assert {done.job.name for done in test.run_all(jobs)} == {"mutations", "first", "second", "lint"}
    assert order.index("first") < order.index("second")
    assert order[-1] == "mutations"


def test_every_seeded_fault_fits_the_code_that_it_names() -> None:
    found = {fault.name: (ROOT / fault.file).read_text("utf-8").count(fault.find) for fault in mutate.faults("")}
    assert {name: count for name, count in found.items() if count != 1} == {}
