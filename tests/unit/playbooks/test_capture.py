# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook `capture`, on a simulated host: the place of its files, and its messages about them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.simulated import simulate

PROJECT = Path(__file__).resolve().parents[3]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder to start the playbook in, with its inventory, and a home beside it."""
    (tmp_path / "home").mkdir()
    (tmp_path / "here").mkdir()
    inventory = {"all": {"hosts": {"web1": simulate(tmp_path / "web1", "xen_hvm")}}}
    (tmp_path / "hosts.json").write_text(json.dumps(inventory))
    return tmp_path


def run(place: Path, *words: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("ansible-playbook")),
            "-i",
            str(place / "hosts.json"),
            "nearmetal.ec2.capture",
            *words,
        ],
        cwd=place / "here",
        env={
            **environment,
            "HOME": str(place / "home"),
            "ANSIBLE_COLLECTIONS_PATH": str(PROJECT / ".ansible/collections"),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_misspelt_variable_is_named(place: Path) -> None:
    output = " ".join(run(place, "-e", "capture_dir=elsewhere").split())
    assert "the variable capture_dir isn't an option and has no effect: is capture_directory meant?" in output


@pytest.mark.parametrize(("given", "folder"), [("", "here/nearmetal-capture"), ("~/captures", "home/captures")])
def test_the_captures_are_where_the_playbook_says(given: str, folder: str, place: Path) -> None:
    output = run(place, *(("-e", f"capture_directory={given}") if given else ()))
    assert f"The captures are in {place / folder}" in output
    assert json.loads((place / folder / "web1.json").read_text())["format"] == 1
    assert (place / folder).stat().st_mode & 0o777 == 0o700
    assert not (place / "here/~").exists()


def test_check_mode_claims_no_capture(place: Path) -> None:
    assert "The captures are in" not in run(place, "--check")
    assert not list((place / "here").iterdir())


def test_a_host_that_is_named_like_a_path_stays_in_the_folder(place: Path) -> None:
    (variables,) = json.loads((place / "hosts.json").read_text())["all"]["hosts"].values()
    (place / "hosts.json").write_text(json.dumps({"all": {"hosts": {"../../home/a b": variables}}}))
    run(place)
    assert [path.name for path in (place / "here/nearmetal-capture").iterdir()] == [".._.._home_a_b.json"]
    assert not list((place / "home").glob("a*"))
