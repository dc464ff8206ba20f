# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the tarball into build/ and let Galaxy's own importer judge it."""

from __future__ import annotations

import os
import posixpath
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path, PurePosixPath

from dev import ROOT, tree

# Folders that users don't need: build_ignore in galaxy.yml must leave them out of the tarball.
NOT_SHIPPED = ("tests/", "molecule/", "lab/", "dev/", "requirements/", ".venv", ".ansible", ".cache", "build/")

LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")

# ansible-test and ansible-lint are suites of their own, with more rules and on more files than the importer's. It also
# stops ansible-lint after three minutes, too early on a busy machine. tests/unit/docs/inclusion/test_inclusion.py runs
# playbooks from the tarball.
SETTINGS = "[galaxy-importer]\nRUN_ANSIBLE_TEST = False\nRUN_ANSIBLE_LINT = False\n"


def build(into: Path) -> Path:
    """Build a tarball of the files that git knows or would add; its path."""
    with tempfile.TemporaryDirectory(prefix="nearmetal-build-") as folder:
        for name in tree.files():
            target = Path(folder) / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())
            target.chmod((ROOT / name).stat().st_mode)
        command = ["ansible-galaxy", "collection", "build", "--force", "--output-path", str(into), folder]
        subprocess.run(command, check=True)
    return max(into.glob("nearmetal-ec2-*.tar.gz"), key=lambda path: path.stat().st_mtime)


def unwanted_files(tarball: Path) -> "list[str]":
    """Files of the tarball that users don't need."""
    listed = subprocess.run(["tar", "-tzf", str(tarball)], capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.splitlines() if name.startswith(NOT_SHIPPED)]


def broken_links(tarball: Path) -> "list[str]":
    """Links of pages to files that the tarball hasn't: what isn't shipped needs the address of the repository."""
    with tarfile.open(tarball) as content:
        files = {member.name: member for member in content.getmembers()}
        pages = {name: content.extractfile(member) for name, member in files.items() if name.endswith(".md")}
        texts = {name: page.read().decode("utf-8") for name, page in pages.items() if page}
    known = {*files, *(parent.as_posix() for name in files for parent in PurePosixPath(name).parents)}
    links = ((name, target) for name, text in texts.items() for target in LINK.findall(text))
    return [
        f"{name}: {target} isn't in the tarball"
        for name, target in links
        if ":" not in target and posixpath.normpath(posixpath.join(posixpath.dirname(name), target)) not in known
    ]


def complaints_of(tarball: Path) -> "list[str]":
    """The errors and warnings of galaxy-importer."""
    with tempfile.TemporaryDirectory(prefix="nearmetal-import-") as folder:
        settings = Path(folder) / "galaxy-importer.cfg"
        settings.write_text(SETTINGS)
        environment = {**os.environ, "GALAXY_IMPORTER_CONFIG": str(settings), "TMPDIR": folder}
        done = subprocess.run(
            [sys.executable, "-m", "galaxy_importer.main", str(tarball.resolve())],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    print(done.stdout)
    complaints = [line for line in done.stdout.splitlines() if line.startswith(("ERROR", "WARNING"))]
    return complaints or ([f"galaxy-importer ended with {done.returncode}"] if done.returncode else [])


def main() -> int:
    """Print the tarball's name; 1 when something is wrong with it."""
    into = ROOT / "build"
    into.mkdir(exist_ok=True)
    tarball = build(into)
    problems = [f"{name} is in the tarball: see build_ignore in galaxy.yml" for name in unwanted_files(tarball)]
    problems += broken_links(tarball) + complaints_of(tarball)
    for problem in problems:
        print(problem)
    print(f"{tarball.relative_to(ROOT)}: {tarball.stat().st_size / 1024:.0f} KiB, {len(problems)} problems")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
