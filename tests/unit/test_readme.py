# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of README.md work, from an installation outside this checkout."""

from __future__ import annotations

import configparser
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Dict, List

import pytest
import yaml
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.requests import tune_requests

from dev.gates import Copy
from dev.gates.references import anchors

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")
BIN = Path(sys.executable).parent
INVENTORY = """all:
  hosts:
    canary:
      ansible_connection: local
  children:
    redis:
      hosts:
        canary:
"""


def blocks(language: str) -> List[str]:
    """The code blocks of that language, in their order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.M | re.S)


def commands(first: str) -> List[List[str]]:
    """The commands of all shell blocks that begin so, without their comments."""
    lines = [shlex.split(line, comments=True) for block in blocks("sh") for line in block.splitlines()]
    return [words for words in lines if words and words[0] == first]


def run(words: List[str], folder: Path) -> str:
    environment: Dict[str, str] = {
        **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "ANSIBLE_COLLECTIONS_PATH": str(folder / "collections"),
        "ANSIBLE_GALAXY_CACHE_DIR": str(folder / "cache"),
    }
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Somebody's repository, into which the collection was installed from git as README says."""
    folder = tmp_path_factory.mktemp("repository")
    source = folder / "ec2"
    subprocess.run(["git", "clone", "-q", "--no-hardlinks", str(ROOT), str(source)], check=True)
    subprocess.run(["git", "-C", str(source), "checkout", "-q", "-B", "main"], check=True)
    (requirements,) = [block for block in blocks("yaml") if "collections:" in block]
    version = yaml.safe_load(requirements)["collections"][0]["version"]
    if version != "main":
        subprocess.run(["git", "-C", str(source), "tag", "--force", version, "HEAD"], check=True, capture_output=True)
    (folder / "requirements.yml").write_text(
        requirements.replace("https://github.com/nearmetal/ec2.git", f"file://{source}")
    )
    (folder / "hosts.yml").write_text(INVENTORY)
    (words,) = [words for words in commands("ansible-galaxy") if "-r" in words]
    run([*words, "-p", str(folder / "collections")], folder)
    return folder


def test_a_clone_and_a_tarball_are_installed_without_a_network(repository: Path, tmp_path: Path) -> None:
    clone, tarball = [words for words in commands("ansible-galaxy") if "--offline" in words]
    (build,) = [words for words in commands("ansible-galaxy") if "build" in words]
    mine = tmp_path / "mine"
    mine.mkdir()
    (tmp_path / "ec2").symlink_to(repository / "ec2")
    run(build, mine)
    for words in (clone, tarball):
        run([*words, "--force"], mine)
        installed = mine / "collections/ansible_collections/nearmetal/ec2"
        assert (installed / "plugins/modules/tune.py").exists()
        assert not (installed / "tests").exists()


def test_every_playbook_named_exists_and_parses(repository: Path) -> None:
    named = commands("ansible-playbook")
    assert len(named) >= 5
    for words in named:
        run([*words, "--syntax-check"], repository)


def test_the_role_runs_in_somebodys_playbook(repository: Path) -> None:
    (play,) = [block for block in blocks("yaml") if "hosts:" in block]
    (repository / "play.yml").write_text(play)
    assert "canary" in run(["ansible-playbook", "-i", "hosts.yml", "play.yml", "--list-hosts"], repository)
    run(["ansible-playbook", "-i", "hosts.yml", "play.yml", "--syntax-check"], repository)


def test_the_variables_are_what_tune_takes() -> None:
    (variables,) = [yaml.safe_load(block) for block in blocks("yaml") if "tune_workload" in block]
    assert tune_requests([variables["tune_workload"]], variables["tune_concerns"], {})


def test_the_callback_is_the_one_that_this_project_uses() -> None:
    (block,) = blocks("ini")
    documented, project = configparser.ConfigParser(), configparser.ConfigParser()
    documented.read_string(block)
    project.read(ROOT / "ansible.cfg")
    assert documented["defaults"]["stdout_callback"] == project["defaults"]["stdout_callback"]


def test_every_make_target_exists() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    named = {words[1] for words in commands("make")} | set(re.findall(r"`make ([a-z]+)", README))
    assert {"demo", "test"} <= named
    for target in named:
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_every_link_of_every_page_leads_to_a_page_or_a_heading() -> None:
    for name in Copy(ROOT).having(".md"):
        page = ROOT / name
        text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _sharp, heading = target.partition("#")
            linked = page.parent / path if path else page
            assert "://" in target or linked.exists(), f"{name}: {target}"
            assert "://" in target or not heading or heading in anchors(linked.read_text("utf-8")), f"{name}: {target}"


def test_the_index_of_the_documentation_names_every_page() -> None:
    linked = re.findall(r"^\| \[.*?\]\(([^)]+)\)", (ROOT / "docs/README.md").read_text("utf-8"), re.M)
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")} - {"README.md"}
    assert sorted(linked) == sorted(pages | {"workload_status.csv"})
