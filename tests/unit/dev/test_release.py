# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make release` on a copy of this working copy, and what a release promises to pip, ansible-builder and readers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import List

import pytest
import yaml

from dev import ROOT, build, release, tree

BIN = Path(sys.executable).parent
WITH_TOOLS = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
MORE = (
    *("user.name=Somebody", "user.email=somebody@example.org"),
    *("commit.gpgsign=false", "tag.gpgsign=false", "core.hooksPath=/dev/null"),
)
GIT = ["git", *(word for setting in MORE for word in ("-c", setting))]


def git(folder: Path, *words: str) -> str:
    return subprocess.run([*GIT, *words], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """This working copy as a repository of its own, with one fragment."""
    folder = tmp_path / "project"
    for name in tree.files():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    for name in (folder / release.FRAGMENTS).glob("*.yml"):
        name.unlink()
    (folder / release.FRAGMENTS).mkdir(exist_ok=True)
    (folder / release.FRAGMENTS / "one.yml").write_text("---\nbugfixes:\n  - tune - is kinder to its hosts.\n")
    git(folder, "init", "--quiet", "--initial-branch", "main")
    for setting in MORE:
        git(folder, "config", *setting.split("=", 1))
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "All")
    return folder


def run(project: Path, version: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "dev.release", version],
        cwd=project,
        env=WITH_TOOLS,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_release_has_a_changelog_a_tarball_a_commit_and_a_tag(project: Path) -> None:
    done = run(project, "7.8.9")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (git(project, "describe", "--tags"), git(project, "status", "--porcelain")) == ("7.8.9", "")
    assert (project / "build/nearmetal-ec2-7.8.9.tar.gz").exists()
    changelog = (project / "CHANGELOG.rst").read_text()
    assert "v7.8.9" in changelog
    assert "kinder to its hosts" in changelog
    assert list((project / release.FRAGMENTS).glob("*.yml")) == []
    for name in release.PLACES:
        assert "7.8.9" in (project / name).read_text(), name
        assert "version: main" not in (project / name).read_text(), name
    again = run(project, "7.8.9")
    assert "galaxy.yml has 7.8.9, and a release is newer than that" in again.stderr


def refused(project: Path, version: str) -> str:
    """Why this version isn't released; nothing has changed then."""
    before = git(project, "status", "--porcelain")
    done = run(project, version)
    assert done.returncode == 1
    assert (git(project, "status", "--porcelain"), git(project, "tag")) == (before, "")
    return done.stderr


def test_what_is_refused_changes_nothing(project: Path) -> None:
    for wrong in ("1.2", "v1.2.3", "1.02.3", "1.2.3-rc1", ""):
        assert "three numbers with dots between them are wanted" in refused(project, wrong)
    assert "a release is newer than that" in refused(project, "0.0.1")
    (project / "README.md").write_text("changed")
    assert "the working copy has changes" in refused(project, "7.8.9")
    git(project, "restore", "README.md")
    git(project, "rm", "--quiet", "-r", release.FRAGMENTS)
    git(project, "commit", "--quiet", "--message", "None")
    assert "no fragment says what has changed" in refused(project, "7.8.9")


def test_the_pages_install_the_released_version_or_the_branch() -> None:
    version = release.present()
    for name, pattern in release.PLACES.items():
        found: List[str] = [match[0] for match in re.finditer(pattern, (ROOT / name).read_text("utf-8"), re.M)]
        assert found, name
        assert all(version in text or text == "version: main" for text in found), name


def test_ansible_builder_takes_the_example_and_what_the_collection_asks_for(tmp_path: Path) -> None:
    for path in (ROOT / "docs/examples").glob("*.yml"):
        shutil.copy(path, tmp_path)
    create = [str(BIN / "ansible-builder"), "create", "--context", "context", "--file", "execution-environment.yml"]
    subprocess.run(create, cwd=tmp_path, env=WITH_TOOLS, check=True, capture_output=True)
    wanted = (tmp_path / "context/_build/requirements.yml").read_text()
    assert "nearmetal/ec2" in wanted
    assert "amazon.aws" in wanted, "which the inventory of the examples needs"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", WITH_TOOLS["PATH"])
        tarball = build.build(tmp_path)
    assert build.broken_links(tarball) == []
    # Forced, because this checkout may be among the paths of installed collections.
    install = [str(BIN / "ansible-galaxy"), "collection", "install", "--offline", "--force", str(tarball)]
    subprocess.run([*install, "-p", str(tmp_path)], cwd=tmp_path, check=True, capture_output=True)
    introspect = [str(BIN / "ansible-builder"), "introspect", "--write-pip", "pip.txt", str(tmp_path)]
    subprocess.run(introspect, cwd=tmp_path, env=WITH_TOOLS, check=True, capture_output=True)
    assert re.search(r"^boto3>=1\.34\.0\b", (tmp_path / "pip.txt").read_text(), re.M)


def test_the_lowest_boto3_is_the_one_that_a_lane_has() -> None:
    (lowest,) = re.findall(r"^boto3>=(\S+)$", (ROOT / "requirements.txt").read_text("utf-8"), re.M)
    locked = (ROOT / "requirements/core-2.16.txt").read_text("utf-8")
    assert f"boto3=={lowest} " in locked


def test_the_pipelines_run_the_commands_of_the_readme() -> None:
    github = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))
    gitlab = yaml.safe_load((ROOT / ".gitlab-ci.yml").read_text("utf-8"))
    weekly = yaml.safe_load((ROOT / ".github/workflows/lab.yml").read_text("utf-8"))
    jobs = {**github["jobs"], **weekly["jobs"]}
    for job, command in (("test", "test-all"), ("demo", "demo"), ("lab", "test-lab")):
        assert {"run": f"make {command}"} in jobs[job]["steps"]
        assert gitlab[job]["script"] == [f"make {command}"]
    assert weekly["on"]["schedule"]
    only = {job: [rule["if"].split()[1] for rule in gitlab[job]["rules"]] for job in ("test", "demo", "lab")}
    assert only == {"test": ["!~"], "demo": ["!~"], "lab": ["=="]}, "a schedule runs the lab alone"
    assert (ROOT / ".ci/run").read_text("utf-8").endswith("exec make test-all\n")
