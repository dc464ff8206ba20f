# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""ansible-test sanity on this working copy: `python -m dev.sanity .venv 2.19 [--python 3.13]`.

Without options all tests run with each Python of this machine, but for `import`, which takes a minute with each: it
runs with the oldest and the newest. tests/unit/properties/test_imports.py imports the same files with those between.

ansible-test insists on a folder named .../ansible_collections/nearmetal/ec2 and resolves symbolic
links, so it gets a copy of the files that git knows or would add.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from dev import ROOT, tree
from dev.programs import pythons
from dev.running import junit

# The pip that each ansible-core asks for, as named in its ansible_test/_util/target/setup/requirements.py.
PIP_SCRIPTS = {"2.19": "get_pip_24_2.py", "2.21": "get_pip_25_2.py"}
# The Pythons of managed hosts that ansible-core 2.19 knows.
TARGETS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13")
# ansible-test downloads its script from a host that many networks can't reach. This one installs the interpreter's own
# pip instead. GET_PIP must be unset before ensurepip runs.
PIP_SCRIPT = """\
import os, subprocess, sys
environment = {name: value for name, value in os.environ.items() if name != "GET_PIP"}
import ensurepip
ensurepip.bootstrap(default_pip=True)
arguments = [word for word in sys.argv[1:] if word not in ("--no-setuptools", "--no-wheel")]
sys.exit(subprocess.call([sys.executable, "-m", "pip", "install", *arguments], env=environment))
"""
# Tests that ansible-test may skip: those without a file of ours, and those for a Python that this machine lacks, which
# the closing line of `make test-all` names.
ALLOWED_SKIPS = re.compile(
    r'No tests applicable\.|Skipping sanity test "\S+" on Python [\d.]+ because it could not be found\.'
)


def offline_pip(core: str) -> None:
    """Put our pip script where ansible-test looks first, unless there is one."""
    script = Path.home() / ".ansible/test/cache" / PIP_SCRIPTS[core]
    if not script.exists():
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(PIP_SCRIPT, encoding="utf-8")


def copy_tree(into: Path) -> Path:
    """Copy the working copy's files below a folder that ansible-test accepts; the path of the copy."""
    copy = into / "ansible_collections" / "nearmetal" / "ec2"
    for name in tree.files():
        target = copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target)
    return copy


def search_path(venv: Path, into: Path) -> str:
    """The environment's tools, then each real interpreter, then the rest without pyenv's shims."""
    links = into / "pythons"
    links.mkdir()
    for version, python in pythons.find().items():
        (links / f"python{version}").symlink_to(python)
    rest = [name for name in os.environ.get("PATH", "").split(os.pathsep) if Path(name).name != "shims"]
    return os.pathsep.join([str(venv / "bin"), str(ROOT / ".venv/bin"), str(links), *rest])


def cases_of(copy: Path, suite: str, output: str) -> "list[junit.Case]":
    """One case per sanity test, from ansible-test's JUnit files, and one for tests that it skipped with a warning."""
    cases = [
        junit.Case(suite, path.stem.replace("ansible-test-sanity-", ""), case.outcome, case.seconds, case.text)
        for path in sorted((copy / "tests/output/junit").glob("*.xml"))
        for case in junit.read(path)
        if not (case.outcome == "skipped" and ALLOWED_SKIPS.search(case.text))
    ]
    left_out = [
        line
        for line in output.splitlines()
        if ("Skipping" in line or "Required program" in line) and not ALLOWED_SKIPS.search(line)
    ]
    outcome = "failed" if left_out or not cases else "passed"
    return [*cases, junit.Case(suite, "nothing left out", outcome, text="\n".join(left_out))]


def messages_of(output: str) -> str:
    """The messages of ansible-test without those of pip, and all lines after a fatal error."""
    lines = output.splitlines()
    broke = next((number for number, line in enumerate(lines) if line.startswith("FATAL: Command")), len(lines))
    messages = [line for line in lines[:broke] if line.startswith(("ERROR", "WARNING", "FATAL"))]
    return "\n".join(messages + lines[broke:])


def runs(options: "list[str]") -> "list[list[str]]":
    """The options of each run of ansible-test: the given options, or else runs of all tests."""
    targets = [version for version in pythons.find() if version in TARGETS]
    ends = sorted({targets[0], targets[-1]}, key=targets.index)
    imports = [["--test", "import", "--python", version] for version in ends]
    return [options] if options else [["--skip-test", "import"], *imports]


def run(venv: Path, core: str, into: Path, options: "list[str]") -> "list[junit.Case]":
    """The sanity tests of one ansible-core, in a copy below `into`."""
    offline_pip(core)
    copy = copy_tree(into)
    environment = {**os.environ, "PATH": search_path(venv, into)}
    command = [str(venv / "bin/ansible-test"), "sanity", "--local", "--junit", "--color", "no"]
    outputs, broken = [], []
    for words in runs(options):
        done = subprocess.run(
            [*command, *words],
            cwd=copy,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        print(messages_of(done.stdout))
        outputs.append(done.stdout)
        if done.returncode:
            broken.append(done.stdout[-4000:])
    suite = f"sanity-{core}"
    cases = cases_of(copy, suite, "".join(outputs))
    if broken and all(case.outcome == "passed" for case in cases):
        cases.append(junit.Case(suite, "ansible-test", "failed", text=broken[0]))
    return cases


def main(arguments: "list[str]") -> int:
    """`.venv 2.19`, then options of ansible-test; writes build/junit/sanity-2.19.xml."""
    venv, core, options = ROOT / arguments[0], arguments[1], arguments[2:]
    # Outside the working copy, because ansible-test would ask its git, which ignores build folders.
    with tempfile.TemporaryDirectory(prefix="nearmetal-sanity-") as folder:
        cases = run(venv, core, Path(folder), options)
    junit.write(ROOT / "build/junit" / f"sanity-{core}.xml", f"sanity-{core}", cases)
    return int(any(case.outcome != "passed" for case in cases))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
