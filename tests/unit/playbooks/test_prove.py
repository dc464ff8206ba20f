# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook `prove` measures several hosts only where somebody named them."""

from __future__ import annotations

import re
from typing import List, Tuple

import pytest

from tests.support.fleet import Fleet
from tests.support.report.judged import well

REFUSED = "prove would measure all 3 hosts of the inventory at once: name the one that you mean with -e target=db-1"
# An import of the playbook, and a play of one's own whose hosts are named in it.
IMPORTED = "- import_playbook: nearmetal.ec2.prove\n"
OWN = "- hosts: all\n  gather_facts: false\n  roles: [nearmetal.ec2.prove]\n"


def measured(
    fleet: Fleet, hosts: int, *words: str, playbook: str = "nearmetal.ec2.prove", **variables: str
) -> Tuple[str, List[str]]:
    """The output, and the hosts on which the module ran; `variables` are those of each host."""
    names = [f"db-{number + 1}" for number in range(hosts)]
    fleet.inventory({name: {"fate": "dies", **variables} for name in names}, {"canary": names[1:2]})
    if "\n" in playbook:
        (fleet.folder / "site.yml").write_text(playbook)
        playbook = str(fleet.folder / "site.yml")
    run = fleet.run("-e", "prove_command=true", *words, playbook=playbook)
    assert run.returncode == 2
    shown = " ".join(well(run).split())
    died = re.findall(r"✗ (db-.): the host went away", shown)
    return shown, sorted(died)


@pytest.mark.parametrize("playbook", ["nearmetal.ec2.prove", IMPORTED])
@pytest.mark.parametrize("words", [(), ("--check",), ("--tags", "prove"), ("--limit", "")])
def test_an_inventory_of_several_hosts_is_refused_in_one_sentence(
    fleet: Fleet, words: Tuple[str, ...], playbook: str
) -> None:
    shown, died = measured(fleet, 3, *words, playbook=playbook)
    assert died == []
    assert shown.count(f"✗ db-1: {REFUSED}, or several with target or --limit") == 1
    assert "assertion" not in shown


def test_a_variable_of_the_inventory_that_is_called_target_names_nobody(fleet: Fleet) -> None:
    shown, died = measured(fleet, 3, target="canary")
    assert died == []
    assert REFUSED in shown


@pytest.mark.parametrize(
    ("hosts", "words", "playbook", "expected"),
    [
        (1, (), "nearmetal.ec2.prove", ["db-1"]),
        (3, ("-e", "target=db-2"), "nearmetal.ec2.prove", ["db-2"]),
        (3, ("-e", "target=all"), "nearmetal.ec2.prove", ["db-1", "db-2", "db-3"]),
        (3, ("--limit", "db-1,db-3"), "nearmetal.ec2.prove", ["db-1", "db-3"]),
        (3, ("--limit", "canary"), IMPORTED, ["db-2"]),
        (3, (), f"{IMPORTED}  vars: {{target: 'db-1,db-2'}}\n", ["db-1", "db-2"]),
        (3, (), OWN, ["db-1", "db-2", "db-3"]),
    ],
)
def test_a_single_host_and_hosts_that_are_named_are_measured(
    fleet: Fleet, hosts: int, words: Tuple[str, ...], playbook: str, expected: List[str]
) -> None:
    assert measured(fleet, hosts, *words, playbook=playbook)[1] == expected
