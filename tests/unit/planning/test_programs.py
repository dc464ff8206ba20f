# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""No workload sets what the vendor of one of its programs asks against: tests/support/program_rules.toml."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import pytest
import tomllib
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Finding
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.programs import SIGNS
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._forms.sources import links

from tests.support import workload_table
from tests.support.fresh_host import booted
from tests.support.hosts import built
from tests.support.workload_rules import FOLDER, description

PROGRAMS: Dict[str, Any] = tomllib.loads((FOLDER / "program_rules.toml").read_text("utf-8"))
# One with rings and moderation, idle states and a governor, and one with the default of EC2's own distribution.
HOSTS = ("metal", "nitro_full")
# What a workload doesn't set on this host, and so asks nothing of it.
SET = ("ok", "would_change", "refused")


def test_every_recognized_program_has_its_vendors_wishes() -> None:
    assert set(SIGNS) - set(PROGRAMS) == set(), "add them to tests/support/program_rules.toml, after their vendors"
    for name, sign in SIGNS.items():
        assert sign.workload in PROGRAMS[name]["workloads"], name
    for name, program in PROGRAMS.items():
        assert program["source"] or not {"asks", "on", "sets"} & set(program), f"{name}: whose wishes?"
        assert all(url or words.startswith("https://") for words, url in links(program["source"])), name


def cases() -> Iterator[Tuple[str, str, str, str]]:
    """Program, workload, host, and "" or the distribution and version that the host has instead."""
    for name, program in PROGRAMS.items():
        for workload in program["workloads"]:
            yield from ((name, workload, host, "") for host in HOSTS)
            yield from ((name, workload, "metal", release) for release in program.get("on", {}))


@pytest.mark.parametrize(("name", "workload", "kind", "release"), list(cases()))
def test_a_workload_sets_nothing_that_a_programs_vendor_asks_against(
    name: str, workload: str, kind: str, release: str, tmp_path: Path
) -> None:
    host = description(kind)
    if release:
        identity, version = release.split()
        host["files"]["/etc/os-release"] = f'ID="{identity}"\nVERSION_ID="{version}"\n'
    found = workload_table.planned(workload_table.look(booted(tmp_path, built(host))), workload)[1]
    program = PROGRAMS[name]
    asks = {**program.get("asks", {}), **program.get("on", {}).get(release, {})}
    wrong = {knob: value for knob, value in wanted(found) if knob in asks and not suits(value, asks[knob])}
    assert wrong == {}, f"{workload} sets against what {name} asks for: {program['source']}"
    on_release = {knob for knob, ask in program.get("on", {}).get(release, {}).items() if ask["one_of"]}
    must = on_release.union(program.get("sets", ()))
    assert must - {knob for knob, _value in wanted(found)} == set(), f"{name} needs it of {workload}"


def wanted(findings: Tuple[Finding, ...]) -> List[Tuple[str, Any]]:
    """Knobs, each with what is wanted of it on this host."""
    return [
        (f"{finding.concern}.{finding.knob}", finding.wanted)
        for finding in findings
        if finding.status in SET and finding.wanted is not None
    ]


def suits(value: Any, ask: Dict[str, Any]) -> bool:
    """Whether a value of a plan, of each device or of the host, is one that the vendor asks for."""
    if isinstance(value, dict):
        return all(suits(each, ask) for each in value.values())
    if "one_of" in ask:
        return str(value) in ask["one_of"]
    return int(value) <= ask["most"] if "most" in ask else int(value) >= ask["least"]
