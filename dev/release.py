# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make a release: `make release VERSION=1.2.3`. RELEASING.md says what comes before and after.

The version is written where it stands, the changelog follows from the fragments, and the tarball is built, judged by
galaxy-importer, installed and run. Only when all of that worked there are a commit and a tag. Nothing is pushed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from dev import ROOT, build

FORM = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)", re.ASCII)
# Where the version stands; the pattern's first group stays in front of it.
PLACES = {
    "galaxy.yml": r"^(version: )\S+",
    "plugins/module_utils/_version.py": r'^(VERSION = ")[^"]+',
    # Before the first release git has no tag to install from, but the branch main.
    "README.md": r"(\bversion: |nearmetal-ec2-)(?:main|\d+\.\d+\.\d+)",
    "docs/examples/requirements.yml": r"(\bversion: )(?:main|\d+\.\d+\.\d+)",
    "docs/examples/execution-environment.yml": r"(\bversion: )(?:main|\d+\.\d+\.\d+)",
    "docs/examples/user-data": r"(/ec2\.git,)(?:main|\d+\.\d+\.\d+)",
}
FRAGMENTS = "changelogs/fragments"


class ReleaseError(Exception):
    """A sentence that says what stands in the way of the release."""


def git(*words: str) -> str:
    """The output of git. Raises ReleaseError when it fails."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(f"`git {' '.join(words)}` failed: {done.stderr.strip()}")
    return done.stdout.strip()


def numbers(version: str) -> "tuple[int, ...]":
    """The three numbers of a version. Raises ReleaseError for any other form."""
    if not FORM.fullmatch(version):
        raise ReleaseError(f"VERSION={version}: three numbers with dots between them are wanted, such as 1.2.3")
    return tuple(map(int, version.split(".")))


def present() -> str:
    """The version in galaxy.yml."""
    match = re.search(r"^version: (\S+)", (ROOT / "galaxy.yml").read_text(encoding="utf-8"), re.MULTILINE)
    if not match:
        raise ReleaseError("galaxy.yml: there is no version in it")
    return match[1]


def look_first(version: str) -> None:
    """Raise ReleaseError when this version can't be released from this working copy."""
    if numbers(version) <= numbers(present()):
        raise ReleaseError(f"VERSION={version}: galaxy.yml has {present()}, and a release is newer than that")
    if git("tag", "--list", version):
        raise ReleaseError(f"VERSION={version}: there is a tag of this name")
    changes = git("status", "--porcelain")
    if changes:
        raise ReleaseError(f"the working copy has changes: commit them first, or take them back\n{changes}")
    if not list((ROOT / FRAGMENTS).glob("*.yml")):
        raise ReleaseError(f"{FRAGMENTS}: no fragment says what has changed")


def write_version(version: str) -> None:
    """Write the version everywhere it stands."""
    for name, pattern in PLACES.items():
        path = ROOT / name
        text, count = re.subn(pattern, rf"\g<1>{version}", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        if not count:
            raise ReleaseError(f"{name}: the version doesn't stand where it is looked for: {pattern}")
        path.write_text(text, encoding="utf-8")


def write_changelog() -> None:
    """Write CHANGELOG.rst and changelogs/changelog.yaml from the fragments, which are removed."""
    if subprocess.run(["antsibull-changelog", "release"], cwd=ROOT, check=False).returncode:
        raise ReleaseError("antsibull-changelog could not write the changelog: see the lines above")


def judged_tarball() -> Path:
    """The tarball in build/, without complaints."""
    into = ROOT / "build"
    into.mkdir(exist_ok=True)
    tarball = build.build(into)
    problems = [f"{name} is in the tarball" for name in build.unwanted_files(tarball)]
    problems += build.broken_links(tarball) + build.complaints_of(tarball)
    if problems:
        raise ReleaseError("\n".join(["the tarball has problems:", *problems]))
    return tarball


def try_out(tarball: Path, version: str) -> None:
    """Install the tarball as a user does, and audit a simulated host with it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    with tempfile.TemporaryDirectory(prefix="nearmetal-release-") as name:
        folder = Path(name)
        environment["ANSIBLE_COLLECTIONS_PATH"] = str(folder)
        environment["ANSIBLE_STDOUT_CALLBACK"] = "nearmetal.ec2.fleet"

        def run(*command: str) -> None:
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
            if done.returncode:
                raise ReleaseError(f"`{' '.join(command)}` failed:\n{done.stdout}{done.stderr}")

        run("ansible-galaxy", "collection", "install", "--offline", str(tarball), "-p", str(folder))
        sys.path.insert(0, str(folder))  # the simulated host has what the installed collection observes
        from tests.support.simulated import simulate

        hosts = {"all": {"hosts": {"host": simulate(folder / "host", "xen_hvm")}}}
        (folder / "hosts.json").write_text(json.dumps(hosts), encoding="utf-8")
        run("ansible-playbook", "-i", "hosts.json", "nearmetal.ec2.audit")
        report = json.loads((folder / "nearmetal-report/report.json").read_text(encoding="utf-8"))
    if report["run"]["collection"] != version:
        raise ReleaseError(f"the installed collection calls itself {report['run']['collection']}, not {version}")


def release(version: str) -> Path:
    """All steps; the tarball."""
    look_first(version)
    write_version(version)
    write_changelog()
    tarball = judged_tarball()
    try_out(tarball, version)
    git("add", "--all")
    git("commit", "--quiet", "--message", f"Release {version}")
    git("tag", "--annotate", version, "--message", f"nearmetal.ec2 {version}")
    return tarball


def main(arguments: "list[str]") -> int:
    """Release, or say in a sentence what stands in the way."""
    parser = argparse.ArgumentParser("python -m dev.release", description=__doc__)
    parser.add_argument("version", help="three numbers with dots between them, newer than that in galaxy.yml")
    version = parser.parse_args(arguments).version
    try:
        tarball = release(version)
    except ReleaseError as error:
        print(f"Not released: {error}", file=sys.stderr)
        return 1
    print(f"Released {version}: a commit and a tag, neither of them pushed, and {tarball.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
