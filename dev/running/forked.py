# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""pytest on a copy of the project, in a fork of this process: the libraries are loaded once, not once per run.

The run must not use project modules of this process, because the copy has other versions of them.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

import ansible.module_utils.basic
import boto3
import hypothesis.strategies
import pytest
import yaml

from dev import ROOT

# Libraries that each run uses as this process loaded them.
LOADED = (ansible.module_utils.basic, boto3, hypothesis.strategies, pytest, yaml)
PACKAGES = ("ansible_collections", "dev", "lab", "tests")
COLLECTIONS = Path(".ansible/collections")
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Outcome:
    """How a run of pytest ended."""

    code: int  # pytest's exit code
    failed: "list[str]"  # the tests that failed, in their order
    output: str


@dataclass(frozen=True)
class Run:
    """A run of pytest in a process of its own."""

    pid: int
    folder: Path

    def end(self) -> Outcome:
        """The outcome, after the process was waited for; its code is -1 if the process died."""
        result = self.folder / "result.json"
        code, failed = json.loads(result.read_text("utf-8")) if result.exists() else (-1, [])
        return Outcome(code, failed, (self.folder / "output").read_text("utf-8", errors="replace"))


class _Failed:
    """A plugin of pytest that collects the failed tests."""

    def __init__(self) -> None:
        self.names: "list[str]" = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Called by pytest after the set-up, the call and the end of each test."""
        if report.failed:
            self.names.append(report.nodeid)


def start(copy: Path, tests: "list[str]", folder: Path, variables: "dict[str, str]") -> Run:
    """Start the tests of the copy, up to the first failure; the folder takes what pytest writes."""
    sys.stdout.flush()
    parent = os.getpid()
    pid = os.fork()
    if not pid:
        with contextlib.ExitStack() as stack:
            stack.callback(os._exit, 1)
            stack.callback(sys.stderr.flush)
            stack.push(lambda *error: error[0] and sys.excepthook(*error))
            _end_with(parent)
            _child(copy, tests, folder, variables)
    return Run(pid, folder)


def _end_with(parent: int) -> None:
    """End this process, and all that it starts, when its parent is killed: tests of a fault may run without end."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGUSR1, lambda _number, _frame: os.killpg(0, signal.SIGKILL))
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGUSR1)
    if os.getppid() != parent:  # killed before that
        os.killpg(0, signal.SIGKILL)


def _child(copy: Path, tests: "list[str]", folder: Path, variables: "dict[str, str]") -> None:
    output = os.open(folder / "output", os.O_WRONLY | os.O_CREAT, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.chdir(copy)
    os.environ.update(variables)
    _exchange_the_project(copy)
    failed = _Failed()
    # pytest warns that it can't rewrite assertions of libraries that are loaded already.
    rewriting = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    words = ["-q", "-x", "-p", "no:cacheprovider", "--hypothesis-profile=caught", *rewriting]
    code = int(pytest.main([*words, f"--basetemp={folder}/tests", *tests], plugins=[failed]))
    sys.stdout.flush()
    (folder / "result.json").write_text(json.dumps([code, failed.names]), encoding="utf-8")


def _exchange_the_project(copy: Path) -> None:
    paths = ("", str(ROOT), str(ROOT / COLLECTIONS))
    sys.path[:] = [str(copy), *(entry for entry in sys.path if entry not in paths)]
    for name in [name for name in sys.modules if name.partition(".")[0] in PACKAGES]:
        del sys.modules[name]
    # The next run in this copy uses the bytecode that this run writes.
    sys.dont_write_bytecode = False
