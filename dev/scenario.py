# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run one molecule scenario and write its JUnit file: `python -m dev.scenario NAME FILE`.

A case per step that molecule took, and a case per check that testinfra made in it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from dev import ROOT
from dev.running import junit

# With colors or without. The summary at the end repeats these lines without a level, so it doesn't match.
EXECUTED = re.compile(r"(?:^[A-Z]+ +\S+ ➜ |\[\S+ > )(?P<step>[a-z_]+)(?:\]|:) Executed: (?P<how>.*)")
COLOR = re.compile(r"\x1b\[[0-9;]*m")


class Steps:
    """The steps that molecule reports, read line by line."""

    def __init__(self, suite: str, checks: Path) -> None:
        self.suite = suite
        self.checks = checks  # where testinfra leaves its JUnit file after each verify
        self.cases: "list[junit.Case]" = []
        self._since = time.monotonic()
        self._taken: "dict[str, int]" = {}

    def read(self, line: str) -> None:
        """Add a case for a step that ended. A step without a playbook counts as failed."""
        match = EXECUTED.search(COLOR.sub("", line))
        if not match:
            return
        step, how = match["step"], match["how"].strip()
        self._taken[step] = self._taken.get(step, 0) + 1
        name = step if self._taken[step] == 1 else f"{step} {self._taken[step]}"
        outcome = "passed" if how == "Successful" else "failed"
        now = time.monotonic()
        self.cases.append(junit.Case(self.suite, name, outcome, now - self._since, how))
        self._since = now
        if self.checks.exists():
            self.cases += [
                junit.Case(self.suite, f"{name}: {case.name}", case.outcome, case.seconds, case.text)
                for case in junit.read(self.checks)
            ]
            self.checks.unlink()


def run(name: str, steps: Steps) -> int:
    """Run `molecule test` and show its output; after Ctrl-C destroy the hosts."""
    environment = {
        **os.environ,
        "MOLECULE_GLOB": "molecule/*/molecule.yml",
        "PYTEST_ADDOPTS": f"--junitxml={steps.checks} -p no:cacheprovider",
    }
    process = subprocess.Popen(
        ["molecule", "test", "--scenario-name", name],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    try:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            steps.read(line)
    except KeyboardInterrupt:
        process.wait()
        subprocess.run(["molecule", "destroy", "--scenario-name", name], cwd=ROOT, env=environment, check=False)
        raise
    return process.wait()


def main(arguments: "list[str]") -> int:
    """0 when every step and every check passed."""
    name, target = arguments
    with tempfile.TemporaryDirectory(prefix="nearmetal-molecule-") as folder:
        steps = Steps(f"molecule-{name}", Path(folder) / "checks.xml")
        code = run(name, steps)
    cases = steps.cases
    if code and all(case.outcome == "passed" for case in cases):
        cases.append(junit.Case(steps.suite, "molecule", "failed", text=f"exit code {code}"))
    junit.write(Path(target), steps.suite, cases)
    return int(bool(code) or any(case.outcome != "passed" for case in cases))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
