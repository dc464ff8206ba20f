# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run for nobody is no success: every playbook refuses a target, or an inventory, without hosts."""

from __future__ import annotations

import re
from typing import Any, Dict, Sequence

import pytest

from tests.support.fleet import GOOD_CLOCK, ROOT, Fleet, result_with

GOOD: Dict[str, Any] = {"h1": {"module_result": result_with(GOOD_CLOCK)}}
NOBODY = "no host of the inventory matches {}: check target, and the inventory"
IMPORTED = "- import_playbook: nearmetal.ec2.audit\n  vars: {target: nothere}\n"


@pytest.mark.parametrize(
    ("hosts", "words", "playbook", "sentence"),
    [
        (GOOD, ("-e", "target=nothere"), "nearmetal.ec2.audit", NOBODY.format("nothere")),
        (GOOD, ("-e", "target=h1:!h1"), "nearmetal.ec2.tune", NOBODY.format("h1:!h1")),
        (GOOD, ("-e", "target=canaries"), "nearmetal.ec2.tune", "matches canaries: is canary meant?"),
        (GOOD, ("-e", "traget=h1"), "nearmetal.ec2.tune", "the variable traget chooses no hosts: is target meant?"),
        (GOOD, ("-e", "tune_target=h1"), "nearmetal.ec2.rollout", "the variable tune_target chooses no hosts"),
        (GOOD, ("-e", "limit=h1"), "nearmetal.ec2.tune", "the variable limit chooses no hosts: is target meant?"),
        (GOOD, ("-e", "prove_hosts=h1"), "nearmetal.ec2.prove", "the variable prove_hosts chooses no hosts"),
        (
            GOOD,
            ("-e", "tune_dry_run=true"),
            "nearmetal.ec2.tune",
            "the variable tune_dry_run has no effect: is --check",
        ),
        ({}, (), "nearmetal.ec2.restore", "the inventory has no hosts: name one with -i, or as inventory in"),
        (GOOD, (), IMPORTED, NOBODY.format("nothere")),
    ],
)
def test_a_target_or_an_inventory_without_hosts_is_refused_in_one_sentence(
    fleet: Fleet, hosts: Dict[str, Any], words: Sequence[str], playbook: str, sentence: str
) -> None:
    fleet.inventory(hosts, {"canary": list(hosts)})
    if playbook == IMPORTED:
        (fleet.folder / "site.yml").write_text(playbook)
        playbook = str(fleet.folder / "site.yml")
    run = fleet.run(*words, playbook=playbook)
    assert run.returncode == 4
    said = " ".join((run.stdout + run.stderr).split())
    assert sentence in said
    assert "filter" not in said, "one sentence is enough"
    assert not fleet.reports.exists()


@pytest.mark.parametrize("words", [("--syntax-check",), ("--list-hosts", "-e", "target=nothere")])
def test_what_only_lists_needs_no_host(fleet: Fleet, words: Sequence[str]) -> None:
    fleet.inventory({})
    assert fleet.run(*words).returncode == 0


@pytest.mark.parametrize("target", ["h1", "localhost", "h1,h2", "canary:&all"])
def test_a_target_with_hosts_is_taken(fleet: Fleet, target: str) -> None:
    fleet.inventory(GOOD, {"canary": ["h1"]})
    assert "no host of the inventory" not in fleet.run("-e", f"target={target}", "--list-tasks").stderr
    assert fleet.run("-e", f"target={target.replace('localhost', 'h1')}").returncode == 0


def test_every_playbook_with_a_target_refuses_nobody() -> None:
    plays = [
        line
        for path in (ROOT / "playbooks").glob("*.yml")
        for line in re.findall(r"^  hosts: (?:>-\n)?.*target.*", path.read_text(), re.M)
    ]
    assert len(plays) > 15
    assert [play for play in plays if "{{ target | default('all') | nearmetal.ec2.having_hosts }}" not in play] == []
