# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs as data, one case for each: what the program and its workload want of a host.

host, workload, program  a file of tests/hosts, and what `tune` is given
wanted                   knob → what its finding wants (any, if it isn't named), and a part of what it says
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
import tomllib
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.registry import CONCERNS
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import program as processes
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.options import validate
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.programs import SIGNS
from ansible_collections.nearmetal.ec2.plugins.module_utils._programs.registry import NAMES, program_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads.registry import WORKLOADS
from ansible_collections.nearmetal.ec2.plugins.modules import tune
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._forms.sources import links, sources

from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import probe, routed
from tests.support.hosts import files_of
from tests.support.workload_rules import FOLDER

Call = Callable[..., Dict[str, Any]]
CASES = sorted((Path(__file__).parent / "cases").glob("*.json"))
RULES: Dict[str, Any] = tomllib.loads((FOLDER / "program_rules.toml").read_text("utf-8"))
PLANNED = ("ok", "would_change", "refused")


def test_each_program_has_a_case_and_each_of_its_wishes_is_in_one() -> None:
    cases = [json.loads(path.read_text()) for path in CASES]
    for name in NAMES:
        own = [case for case in cases if case["program"].partition("=")[0] == name]
        assert own, f"tests/unit/programs/cases/{name}.json"
        knobs = {knob for case in own for knob in case["wanted"]}
        assert {wish.knob for wish in program_of(name).wishes} <= knobs


@pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])
def test_a_program_and_its_workload(path: Path, tmp_path: Path, call: Call) -> None:
    case = json.loads(path.read_text())
    host = FakeKernel(tmp_path, routed(files_of(case["host"])))
    probe(host)
    result = call(tune.main, host, check=True, workload=case["workload"], program=case["program"])
    for knob, expected in case["wanted"].items():
        found = [finding for finding in result["findings"] if f"{finding['concern']}.{finding['knob']}" == knob]
        said = [(each(finding["wanted"]), finding["reason"]) for finding in found]
        assert any(
            expected["says"] in reason and expected.get("wanted", values) in (values, *values)
            for values, reason in said
        ), (knob, said)


def each(value: Any) -> List[str]:
    """A finding's value, or each value of its table, as texts."""
    return sorted({str(one) for one in value.values()}) if isinstance(value, dict) else [str(value)]


@pytest.mark.parametrize("name", NAMES)
def test_a_programs_data_is_whole(name: str) -> None:
    program = program_of(name)
    assert program.workload in WORKLOADS
    assert set(program.processes) <= set(processes.names())
    for process in program.processes:
        assert SIGNS[process].workload == program.workload
    for wish in program.wishes:
        concern, _dot, option = wish.knob.partition(".")
        for value in (wish.value, *wish.also):
            validate(concern, CONCERNS[concern].options, {option: value})
        assert wish.reason[0].islower()
        assert not wish.reason.endswith(".")
    for page in (each.page for each in (*program.wishes, *program.checks)):
        assert all(url for _words, url in links(page.reference))
        assert page.read == sources()[page.reference].checked, f"{page.reference} was read on two days"


def test_the_page_says_what_each_program_looks_at_itself() -> None:
    rows = (Path(__file__).parents[3] / "docs/programs.md").read_text("utf-8").splitlines()
    for name in NAMES:
        program = program_of(name)
        cells = next(row for row in rows if row.startswith(f"| `{name}` ({program.title})")).split(" | ")
        for what in (*(wish.knob for wish in program.wishes if wish.checked), *(one.what for one in program.checks)):
            assert what in cells[3], name


@pytest.mark.parametrize("process", [process for name in NAMES for process in program_of(name).processes])
def test_a_program_over_its_workload_sets_what_the_vendor_asks_for(process: str, tmp_path: Path, call: Call) -> None:
    """The rules were written after the vendors' pages before these files were."""
    name = next(name for name in NAMES if process in program_of(name).processes)
    host = FakeKernel(tmp_path, routed(files_of("metal")))
    probe(host)
    result = call(tune.main, host, check=True, workload=program_of(name).workload, program=name)
    wanted: Dict[str, List[Any]] = {}
    for finding in result["findings"]:
        if finding["status"] in PLANNED and finding["wanted"] is not None:
            wanted.setdefault(f"{finding['concern']}.{finding['knob']}", []).extend(each(finding["wanted"]))
    for knob, asked in RULES.get(process, {}).get("asks", {}).items():
        for value in wanted.get(knob, ()):
            if "one_of" in asked:
                assert not asked["one_of"] or value in asked["one_of"], knob
            else:
                assert int(value) <= asked["most"] if "most" in asked else int(value) >= asked["least"], knob
