# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The suites of `make test-all`, as data; each job says whether `make test` runs it too."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Callable

from dev import ROOT, tree
from dev.programs import amazon_aws, chromium, jars, prometheus, pythons, speedscope, unpacked
from dev.running import memory

JUNIT = ROOT / "build" / "junit"
LOGS = ROOT / "build" / "logs"
# The unit tests that run on the Pythons of managed hosts: each folder and file that is named here.
HOST_TESTS = (
    "tests/unit/benchmark/tools/benchmark/test_reading.py",
    "tests/unit/concerns/network_irq/test_spread.py",
    "tests/unit/benchmark/host/test_processes.py",
    "tests/unit/requests/test_combined.py",
    "tests/unit/engine/test_shared_changes.py",
    "tests/unit/facts",
    "tests/unit/host/test_host.py",
    "tests/unit/memory/journal/test_journal.py",
    "tests/unit/parse",
    "tests/unit/plan",
    "tests/unit/planning/ownership/test_neighbours.py",
    "tests/unit/planning/ownership/test_ownership.py",
    "tests/unit/properties/test_any_bytes.py",
    "tests/unit/properties/test_imports.py",
    "tests/unit/properties/test_large_inputs.py",
    "tests/unit/profile/test_folding.py",
    "tests/unit/recorded",
    "tests/unit/test_words.py",
)
# Random tests: more inputs find more than a second Python does.
HOSTILE_INPUTS, RANDOM_LIVES = "tests/unit/fuzz", "tests/unit/sequences"
RANDOM_TESTS = (HOSTILE_INPUTS, RANDOM_LIVES)
# Tests for the Pythons between the oldest and the newest; they import each file that a host gets.
BETWEEN_TESTS = (
    "tests/unit/host/test_host.py",
    "tests/unit/parse",
    "tests/unit/properties/test_any_bytes.py",
    "tests/unit/properties/test_imports.py",
    "tests/unit/properties/test_large_inputs.py",
)
CORES = ((".venv", "2.19"), (".venv-newest", "2.21"))
# The controller tests run in two processes: these folders take about as much CPU as all others, some 400 s each.
FIRST_HALF = (
    "tests/unit/action/",
    "tests/unit/agent/",
    "tests/unit/benchmark/",
    "tests/unit/callback/",
    "tests/unit/concerns/",
    "tests/unit/engine/",
    "tests/unit/host/",
    "tests/unit/levers/",
    "tests/unit/memory/",
    "tests/unit/planning/",
    "tests/unit/properties/",
    "tests/unit/prove/",
    "tests/unit/workloads/",
)
# Tests that depend on ansible-core: they start its programs, or test how a module takes arguments and answers.
STARTS_ANSIBLE = re.compile(
    r"ansible-(?:galaxy|inventory|playbook)\b|tests\.support\.(?:fleet|report\.guide|simulated)\b"
)
MODULE_CONTRACT = ("tests/unit/properties/test_fact_modules.py", "tests/unit/concerns/test_clocksource.py")
# Tests of one ansible-core: those with tools that are in .venv only, such as molecule or the schema of SARIF, and those
# of the documentation's examples, whose plugins have tests of their own on both.
OLDEST_CORE_ALONE = (
    *("tests/unit/dev", "tests/unit/forms/ci", "tests/unit/lab"),
    *("tests/unit/docs/inclusion", "tests/unit/docs/test_cloud.py", "tests/unit/docs/test_rollout.py"),
)
QUICK_LINTERS = ("ruff-check", "ruff-format", "mypy", "yamllint", "shellcheck")
# Days since 1970: chooses the tenth of the types and of the random lives that `make test` takes.
DAY = "NEARMETAL_DAY"


@dataclass(frozen=True)
class Job:
    """One command. Without `own_junit` its exit code is the one test case."""

    suite: str  # the key in tests/suites.toml
    name: str  # unique; the name of its JUnit file and log
    argv: "list[str]"
    lane: str = ""  # the Python or ansible-core of this run, if a suite has several
    own_junit: bool = False
    live: bool = False  # long: runs alone, with its output shown as it comes
    quick: bool = False  # `make test` runs it too, and not `make test-all` alone
    present: "Callable[[], bool]" = lambda: True  # whether this machine has the programs that it needs
    environment: "dict[str, str]" = field(default_factory=dict)

    @property
    def junit(self) -> Path:
        return JUNIT / f"{self.name}.xml"


def environment(venv: str) -> "dict[str, str]":
    """The environment in which every tool runs; siblings are called by name, so PATH begins with the venv."""
    rest = [name for name in os.environ.get("PATH", "").split(os.pathsep) if Path(name).name != "shims"]
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_") and name != DAY},
        "PATH": os.pathsep.join([str(ROOT / venv / "bin"), *rest]),
        "VIRTUAL_ENV": str(ROOT / venv),
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".ansible" / "collections"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _folders(*names: str) -> "list[str]":
    return [name for name in names if (ROOT / name).is_dir()]


def _packages() -> "list[str]":
    """Packages for mypy, by their import names, so that no file is read twice."""
    plugins = "ansible_collections.nearmetal.ec2.plugins"
    rooms = (
        "module_utils",
        *(f"plugin_utils._{name}" for name in ("benchmark", "forms", "profile", "prove", "report", "rollout")),
    )
    own = [f"{plugins}.{room}" for room in rooms]
    names = [*own, *_folders("dev", "lab")]
    return [word for name in names for word in ("--package", name)]


def lint() -> "list[Job]":
    """One case per tool."""
    shell = [name for name in tree.files() if _is_shell(name)]
    schema = ["check-jsonschema", "--builtin-schema"]
    commands = {
        "ruff-check": ["ruff", "check", "--output-format", "concise", "."],
        "ruff-format": ["ruff", "format", "--check", "."],
        "mypy": ["mypy", "--strict", *_packages()],
        "yamllint": ["yamllint", "--strict", *tree.files("*.yml", "*.yaml")],
        "ansible-lint": ["ansible-lint", "--nocolor", "--offline", "--profile", "production", "--strict"],
        "antsibull-docs": ["antsibull-docs", "lint-collection-docs", "--plugin-docs", "."],
        "antsibull-changelog": ["antsibull-changelog", "lint"],
        "shellcheck": ["shellcheck", *shell],
        "github": [*schema, "vendor.github-workflows", *tree.files(".github/workflows/*")],
        "gitlab": [*schema, "vendor.gitlab-ci", ".gitlab-ci.yml"],
    }
    # molecule/ec2 alone uses amazon.aws, and ansible-lint wants to know every module.
    places = os.pathsep.join(map(str, (ROOT / ".ansible" / "collections", amazon_aws.HOME)))
    variables = {**environment(".venv"), "ANSIBLE_COLLECTIONS_PATH": places}
    return [
        Job("lint", name, argv, quick=name in QUICK_LINTERS, environment=variables) for name, argv in commands.items()
    ]


def _is_shell(name: str) -> bool:
    with (ROOT / name).open("rb") as stream:
        first = stream.readline(80)
    return first.startswith(b"#!") and first.split(b"/")[-1].strip() in (b"sh", b"bash", b"env bash", b"env sh")


def gates() -> "list[Job]":
    """The project's own rules."""
    argv = [sys.executable, "-m", "dev.gates", str(JUNIT / "gates.xml")]
    return [Job("gates", "gates", argv, own_junit=True, quick=True, environment=environment(".venv"))]


def sanity() -> "list[Job]":
    """ansible-test sanity, once per ansible-core here: the oldest with every Python, the newest with the newest."""
    jobs = []
    for venv, core in CORES:
        if (ROOT / venv).is_dir():
            argv = [sys.executable, "-m", "dev.sanity", venv, core]
            if core != CORES[0][1]:
                argv += ["--python", pythons.first(pythons.find(), pythons.CONTROLLERS_NEWEST) or ""]
            name = f"sanity-{core}"
            jobs.append(Job("sanity", name, argv, lane=core, own_junit=True, environment=environment(venv)))
    return [*jobs[:-1], replace(jobs[-1], quick=True)]


def _pytest(suite: str, lane: str, venv: str, paths: "list[str]", part: str = "", live: bool = False) -> Job:
    name = "-".join(word for word in (suite, lane, part) if word)
    argv = [str(ROOT / venv / "bin/python"), "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    argv += [f"--junitxml={JUNIT / name}.xml", "-o", f"junit_suite_name={name}", *paths]
    surroundings = {**environment(venv), **({} if live else memory.variables())}
    return Job(suite, name, argv, lane=lane, own_junit=True, live=live, environment=surroundings)


def target() -> "list[Job]":
    """The pure tests on the oldest and the newest supported Python of this machine."""
    versions = list(pythons.find())
    ends = sorted({versions[0], versions[-1]}, key=versions.index)
    jobs = [_pytest("target", version, f".venv-target-{version}", list(HOST_TESTS)) for version in ends]
    return [replace(jobs[0], quick=True), *jobs[1:]]


def between() -> "list[Job]":
    """Parsing and starting programs on the Pythons between those two."""
    versions = list(pythons.find())[1:-1]
    return [_pytest("between", version, f".venv-target-{version}", list(BETWEEN_TESTS)) for version in versions]


def random() -> "list[Job]":
    """Hostile inputs and random sequences, on the oldest Python alone."""
    venv = f".venv-target-{next(iter(pythons.find()))}"
    lives = _pytest("random", "", venv, [RANDOM_LIVES], "lives")
    return [_pytest("random", "", venv, [HOSTILE_INPUTS], "inputs"), replace(lives, quick=True)]


def _controller_tests() -> "list[str]":
    """All other unit tests, which need ansible-core, boto3 or a newer Python."""
    files = (path.relative_to(ROOT).as_posix() for path in (ROOT / "tests" / "unit").rglob("test_*.py"))
    elsewhere = (*HOST_TESTS, *RANDOM_TESTS)
    return sorted(name for name in files if not any(name == path or name.startswith(f"{path}/") for path in elsewhere))


def controller() -> "list[Job]":
    """The tests that need ansible-core or boto3, on the oldest ansible-core."""
    venv, core = CORES[0]
    names = _controller_tests()
    first = [name for name in names if name.startswith(FIRST_HALF)]
    second = [name for name in names if name not in first]
    halves = (_pytest("controller", core, venv, first, "first"), _pytest("controller", core, venv, second, "second"))
    return [replace(half, quick=True) for half in halves]


def newest() -> "list[Job]":
    """Those of the controller tests that depend on ansible-core, on the newest one."""
    venv, core = CORES[-1]
    return [_pytest("newest", core, venv, differing_tests())] if (ROOT / venv).is_dir() else []


def cores() -> "list[Job]":
    """What a user does first, on each ansible-core but the one that has all tests."""
    venvs = {**{core: f".venv-core-{core}" for core in pythons.CORES}, CORES[-1][1]: CORES[-1][0]}
    installed = {core: venv for core, venv in venvs.items() if (ROOT / venv).is_dir()}
    ends = (next(iter(installed), ""), next(reversed(installed), ""))
    jobs = []
    for core, venv in installed.items():
        job = _pytest("cores", core, ".venv", ["tests/cores"])
        surroundings = {**job.environment, "NEARMETAL_CORE": venv}
        jobs.append(replace(job, quick=core in ends, environment=surroundings))
    return jobs


def differing_tests() -> "list[str]":
    """The files of controller tests that depend on ansible-core, without those that run on the oldest alone."""
    files = [name for name in _controller_tests() if STARTS_ANSIBLE.search((ROOT / name).read_text(encoding="utf-8"))]
    return sorted({*MODULE_CONTRACT, *(name for name in files if not name.startswith(OLDEST_CORE_ALONE))})


def build() -> "list[Job]":
    """The tarball, whether Galaxy's own importer takes it, and the documentation site."""
    tarball, site = (
        Job("build", name, [sys.executable, "-m", module], environment=environment(".venv"))
        for name, module in (("tarball", "dev.build"), ("docs-site", "dev.docs"))
    )
    return [replace(tarball, quick=True), site]


def mutations() -> "list[Job]":
    """The seeded faults: each must be caught."""
    argv = [sys.executable, "-m", "dev.mutate", "--junit", str(JUNIT / "mutations.xml")]
    surroundings = {**environment(".venv"), **memory.variables()}
    return [Job("mutations", "mutations", argv, own_junit=True, live=True, environment=surroundings)]


# Scenarios for `make test-lab` alone: they boot a host many times, from an image of its own or below two layers of
# emulation, or fail at each system call of a run.
LONG = (
    *("arm64", "boot_arguments", "cstates", "kernels", "neighbours", "older_kernel", "powercut", "resize"),
    *("xen_hvm", "xen_pv", "xen_pvh"),
)
# Scenarios that run only by name: `ec2` costs money (dev/real_amis.py), `newest_kernel` may find a broken kernel.
BY_NAME = ("ec2", "newest_kernel")
LONG_TESTS = (
    "aws/test_real_amis.py",
    "concerns/test_block_storage.py",
    "concerns/test_cpu_memory.py",
    "concerns/test_drivers.py",
    "concerns/test_neighbours.py",
    "concerns/test_network.py",
    "concerns/test_network_daemons.py",
    "concerns/test_programs.py",
    "concerns/test_virtual_functions.py",
    "hosts/test_lifecycle.py",
    "hosts/test_new_shape.py",
    "hosts/test_shapes.py",
    "measuring/test_benchmarks.py",
    "measuring/test_profile.py",
    "measuring/test_prove.py",
    "measuring/test_prove_reboot.py",
    "runs/test_dead_man.py",
    "runs/test_faults.py",
    "runs/test_late_routes.py",
    "runs/test_restore_after_a_boot.py",
    "runs/test_slow_host.py",
    "runs/test_systemd_boot.py",
)


def lab() -> "list[Job]":
    """Tests against an emulated host with a real kernel, without the long ones."""
    folder = ROOT / "tests" / "lab"
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("test_*.py"))
    return [_pytest("lab", "", ".venv", [f"tests/lab/{name}" for name in names if name not in LONG_TESTS], live=True)]


def browser() -> "list[Job]":
    """Tests of the report's page in Chromium."""
    return [replace(_pytest("browser", "", ".venv", ["tests/browser"]), present=chromium.present)]


def monitoring() -> "list[Job]":
    """Tests of docs/monitoring with Prometheus."""
    return [replace(_pytest("monitoring", "", ".venv", ["tests/monitoring"]), present=prometheus.PACKAGES.present)]


def examples() -> "list[Job]":
    """Tests of docs/examples, and of a profile's stacks, with the programs that read them."""
    programs = {"cloud_init": unpacked.CLOUD_INIT, "haproxy": unpacked.HAPROXY, "packer": unpacked.PACKER}
    found = {**{name: packages.present for name, packages in programs.items()}, "speedscope": speedscope.present}
    return [
        replace(_pytest("examples", name, ".venv", [f"tests/examples/test_{name}.py"]), present=present)
        for name, present in found.items()
    ]


def programs() -> "list[Job]":
    """Servers that say themselves what they find wrong with a simulated host."""
    files = (("debian", "test_servers.py", unpacked.SERVERS.present), ("java", "test_java_servers.py", jars.present))
    jobs = [(_pytest("programs", "", ".venv", [f"tests/programs/{file}"], part), here) for part, file, here in files]
    return [replace(job, present=partial(_as_root, here)) for job, here in jobs]


def _as_root(present: "Callable[[], bool]") -> bool:
    return os.geteuid() == 0 and present()  # only root may put files over the kernel's


def molecule() -> "list[Job]":
    """The scenarios on the lab, without the long ones and those that run only by name."""
    names = (path.parent.name for path in ROOT.glob("molecule/*/molecule.yml"))
    jobs = _scenarios("molecule", sorted(name for name in names if name not in (*LONG, *BY_NAME)))
    return [replace(job, quick=job.lane == "default") for job in jobs]


def long() -> "list[Job]":
    """What `make test-all` leaves to `make test-lab`."""
    tests = _pytest("long", "", ".venv", [f"tests/lab/{name}" for name in LONG_TESTS], live=True)
    worlds = _pytest("long", "", ".venv", ["tests/unit/prove/statistics/verdict/test_worlds.py"], "worlds")
    worlds = replace(worlds, environment={**worlds.environment, "NEARMETAL_WORLDS": "2000"})
    return [tests, worlds, *_scenarios("long", list(LONG))]


def mutants() -> "list[Job]":
    """Changes of single operators in code that writes: each must be noticed or answered."""
    argv = [sys.executable, "-m", "dev.running.mutants", "--junit", str(JUNIT / "mutants.xml")]
    surroundings = {**environment(".venv"), **memory.variables()}
    return [Job("mutants", "mutants", argv, own_junit=True, live=True, environment=surroundings)]


def _scenarios(suite: str, names: "list[str]") -> "list[Job]":
    return [
        Job(
            suite,
            f"molecule-{name}",
            [sys.executable, "-m", "dev.scenario", name, str(JUNIT / f"molecule-{name}.xml")],
            lane=name,
            own_junit=True,
            live=True,
            environment=environment(".venv"),
        )
        for name in names
    ]


# What `make test-all` runs. The longest suites come early, so that no core is idle at the end.
GROUPS = {
    "gates": gates,
    "controller": controller,
    "newest": newest,
    "cores": cores,
    "sanity": sanity,
    "lint": lint,
    "target": target,
    "random": random,
    "between": between,
    "build": build,
    "browser": browser,
    "monitoring": monitoring,
    "examples": examples,
    "programs": programs,
    "mutations": mutations,
    "lab": lab,
    "molecule": molecule,
}
# Run only when named.
ON_REQUEST = {"long": long, "mutants": mutants}
