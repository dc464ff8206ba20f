# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever JSON an option is given, a module on a host ends with a result and one readable line, never a traceback."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Dict, Mapping

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.registry import CONCERNS
from ansible_collections.nearmetal.ec2.plugins.module_utils._tasks.order import answer, task_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads.registry import WORKLOADS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support import fresh_host

BY_NAME = {name: task_of(name).options for name in CONCERNS}
# Modules that take options without being a concern's.
OTHERS = ("benchmark", "capture", "confirm", "network_facts", "restore", "topology_facts", "tune")
Spec = Mapping[str, Mapping[str, Any]]

_WORDS = [
    "",
    "auto",
    "kernel",
    "max",
    "ens5",
    "nvme0n1",
    "0-3",
    "0-99999999",
    "2M",
    "1 2 3",
    "٤٠٩٦",
    "4_096",
    "\x1b[2J",
    "\n",
    "\x00",
]
_TEXT = st.text(max_size=40) | st.sampled_from([*_WORDS, "x" * 5000, "{{ 1 }}", "b'\\xff'", "../../etc"])
_NUMBERS = st.integers() | st.floats() | st.sampled_from([0, -1, 10**40, -(10**40), 2**31, 2**63, 1e308])
_SCALARS = st.none() | st.booleans() | _NUMBERS | _TEXT
_JSON = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=12,
)


def of_rule(rule: Mapping[str, Any]) -> "st.SearchStrategy[Any]":
    """Values of an option's own shape, with anything inside, so that what lies deeper is reached."""
    kind = rule.get("type", "str")
    if "choices" in rule:
        return st.sampled_from(rule["choices"])
    if kind == "list":
        element = {"type": rule.get("elements", "str"), **{key: rule[key] for key in ("options",) if key in rule}}
        return st.lists(anything(element), max_size=4)
    if kind == "dict":
        return of_spec(rule["options"]) if "options" in rule else st.dictionaries(_TEXT, _JSON, max_size=3)
    return {"bool": st.booleans(), "int": st.integers(-2, 70000)}.get(kind, _TEXT)


def anything(rule: Mapping[str, Any]) -> "st.SearchStrategy[Any]":
    return of_rule(rule) | of_rule(rule) | _JSON


def of_spec(spec: Spec) -> "st.SearchStrategy[Dict[str, Any]]":
    """Up to three of the options; rarely one that isn't there."""
    strange = st.tuples(_TEXT.filter(lambda name: not name.startswith("_ansible_")), _JSON)
    if not spec:
        return st.lists(strange, max_size=1).map(dict)
    option = st.sampled_from(sorted(spec)).flatmap(lambda name: st.tuples(st.just(name), anything(spec[name])))
    return st.lists(option | option | option | strange, max_size=3).map(dict)


def result_of(name: str, host: Any, options: Dict[str, Any]) -> Dict[str, Any]:
    """What the agent answers to the task of the module."""
    order = json.loads(json.dumps({"module": name, "wanted": options, "check": True, "more": {}}))
    result: Dict[str, Any] = json.loads(json.dumps(answer(order, host)))
    return result


def require_one_line(result: Dict[str, Any]) -> None:
    assert result.get("failed") or "changed" in result
    assert "exception" not in result
    msg = result.get("msg", "")
    assert len(msg) <= 2000
    assert msg.isprintable()
    for finding in result.get("findings", ()):
        assert finding["reason"].isprintable()
        assert len(finding["reason"]) <= 2000


@pytest.mark.parametrize("name", [*sorted(BY_NAME), *OTHERS])
def test_a_module_ends_with_one_readable_line(name: str, tmp_path: Path) -> None:
    host = fresh_host.fresh(tmp_path, "metal")
    before = {str(path): os.lstat(path).st_mtime_ns for path in tmp_path.rglob("*")}
    of_tune = {
        "concerns": {"type": "dict", "options": {name: {"type": "dict", "options": BY_NAME[name]} for name in BY_NAME}}
    }
    of_tune["workload"] = {"choices": [*WORKLOADS, None]}
    spec = {**task_of(name).options, **(of_tune if name == "tune" else {})}

    @settings(max_examples=max(25, settings.default.max_examples // 4), suppress_health_check=list(HealthCheck))
    @given(of_spec({option: rule for option, rule in spec.items() if option != "sample_seconds"}))
    def ends_well(options: Dict[str, Any]) -> None:
        require_one_line(result_of(name, host, options))

    ends_well()
    assert {str(path): os.lstat(path).st_mtime_ns for path in tmp_path.rglob("*")} == before


@pytest.mark.parametrize("depth", [50, 300])
def test_a_value_that_is_nested_deeply(depth: int, tmp_path: Path) -> None:
    deep: Any = 1
    for _level in range(depth):
        deep = [deep]
    host = fresh_host.fresh(tmp_path, "metal")
    for name, options in (("tune", {"concerns": {"numa": deep}}), ("numa", {"balancing": deep})):
        result = result_of(name, host, options)
        require_one_line(result)
        assert result["failed"]
