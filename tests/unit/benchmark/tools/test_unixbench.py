# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two runs of UnixBench are compared only if the rows of pure computing stayed: a blog's five tables of 2014."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.nearmetal.ec2.plugins.filter.unixbench_comparison import FilterModule
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.tools.unixbench import ROWS

compare = FilterModule().filters()["unixbench_comparison"]
TABLES = Path(__file__).with_name("read") / "unixbench"


def result(name: str) -> Dict[str, Any]:
    return {"details": json.loads((TABLES / f"{name}.json").read_text("utf-8"))["details"]}


@pytest.mark.parametrize(
    ("name", "percents"),
    [
        # The blog's own column: 533 % of PV are 433 % more.
        ("hvm_c3_xlarge", {"syscall": 433, "spawn": 384, "context1": 320, "execl": 189, "shell1": 118}),
        ("sriov_c3_xlarge", {"syscall": 470, "spawn": 398, "context1": 341, "execl": 192, "shell1": 119}),
    ],
)
def test_hvm_against_pv_is_comparable(name: str, percents: Dict[str, int]) -> None:
    found = compare(result(name), result("pv_c3_xlarge"))
    assert {test: round(found["percent"][test] - 0.5) for test in percents} == pytest.approx(percents, abs=1)
    assert (found["comparable"], found["moved"]) == (True, [])


@pytest.mark.parametrize("name", ["hvm_c3_large", "sriov_c3_large"])
def test_half_of_the_cpus_is_no_comparison(name: str) -> None:
    found = compare(result(name), result("pv_c3_xlarge"))
    assert (found["comparable"], found["moved"]) == (False, ["dhry2reg", "whetstone-double"])


def test_runs_without_these_rows_can_t_be_judged() -> None:
    found = compare({"details": {"rows": {"syscall": 200.0}}}, {"details": {"rows": {"syscall": 100.0}}})
    assert found == {"percent": {"syscall": 100.0}, "moved": [], "comparable": None}


@pytest.mark.parametrize(
    "given", [{}, [], None, {"details": {}}, {"details": {"rows": {"syscall": 0}}}, {"details": {"rows": {"x": "1"}}}]
)
def test_what_is_no_result_is_refused(given: Any) -> None:
    with pytest.raises(AnsibleFilterError, match=r"^unixbench_comparison: the result "):
        compare(given, result("pv_c3_xlarge"))


def test_the_index_is_the_geometric_mean_of_its_rows() -> None:
    wrong: List[str] = []
    for path in sorted(TABLES.glob("*_c3_*.json")):
        case = json.loads(path.read_text("utf-8"))
        rows, product = case["details"]["rows"], 1.0
        for row in ROWS:
            product *= rows[row.test] ** (1 / len(ROWS))
        index = case["metrics"][0][1]
        wrong += [path.stem] if abs(product / index - 1) > 0.001 else []
    assert wrong == []
