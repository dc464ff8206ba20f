# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Inventories as others write them: ranges of names, and groups whose names Ansible doesn't take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import List

import pytest

from tests.support.fleet import SLOW_CLOCK, Fleet, result_with

RESULT = json.dumps(result_with(SLOW_CLOCK))


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path)


def names(fleet: Fleet) -> List[str]:
    return sorted(host["name"] for host in fleet.report()["hosts"])


@pytest.mark.parametrize("forks", ["1", "100"])
def test_ranges_of_names_and_their_fix(fleet: Fleet, forks: str) -> None:
    # A YAML inventory has ranges as INI has them; the support's own file holds it.
    (fleet.folder / "hosts.json").write_text(
        f"all:\n  vars: {{module_result: {RESULT}}}\n"
        "  children:\n    web:\n      hosts:\n        web-[08:10].example.com:\n        db-[a:c]:\n"
    )
    run = fleet.run("--forks", forks)
    assert run.returncode == 0, run.stdout
    wanted = ["db-a", "db-b", "db-c", "web-08.example.com", "web-09.example.com", "web-10.example.com"]
    assert names(fleet) == wanted
    (fix,) = (top["fix"] for top in fleet.report()["top"])
    (file,) = fleet.reports.glob("hosts-*.txt")
    assert file.name in fix
    assert sorted(file.read_text().split()) == wanted


def test_a_group_with_a_space_is_refused_in_ini_and_its_hosts_are_not_audited(fleet: Fleet) -> None:
    (fleet.folder / "hosts.json").write_text("[web servers]\nweb-1\n")
    run = fleet.run()
    assert "web servers" in run.stdout + run.stderr, "Ansible names the section"
    assert not fleet.reports.exists() or names(fleet) == []


def test_a_group_with_a_space_in_yaml_is_shown_as_it_is(fleet: Fleet) -> None:
    (fleet.folder / "hosts.json").write_text(
        f"all:\n  vars: {{module_result: {RESULT}}}\n  children:\n    web servers:\n      hosts:\n        web-1:\n"
    )
    run = fleet.run()
    assert run.returncode == 0, run.stdout
    assert [host["groups"] for host in fleet.report()["hosts"]] == [["web servers"]]
