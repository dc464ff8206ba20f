# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module or role without options of its own applies what `base` has; where that has nothing, it changes nothing."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
import yaml
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.registry import CONCERNS
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.waivers import managed
from ansible_collections.nearmetal.ec2.plugins.module_utils._words import LONGEST_VALUE
from ansible_collections.nearmetal.ec2.plugins.modules import clocksource, numa, tune

from tests.support import fresh_host

ROOT = Path(__file__).resolve().parents[3]
Call = Callable[..., Dict[str, Any]]
RULE = (
    "**Without variables** the role applies what the workload `base` has for its concern; where `base` has nothing, it"
    "\nchanges nothing and says which variables it takes."
)
TUNING = [concern for concern in CONCERNS.values() if managed(concern)]
IN_BASE = ("clocksource",)


def everything(root: Path) -> Dict[str, int]:
    return {str(path): os.lstat(path).st_mtime_ns for path in sorted(root.rglob("*")) if not path.is_dir()}


@pytest.mark.parametrize(
    "concern", [concern for concern in TUNING if concern.name not in IN_BASE], ids=lambda concern: concern.name
)
def test_where_base_has_nothing_nothing_is_changed_and_the_options_are_named(
    concern: Any, tmp_path: Path, call: Call
) -> None:
    module = importlib.import_module(f"ansible_collections.nearmetal.ec2.plugins.modules.{concern.name}")
    host = fresh_host.fresh(tmp_path, "metal")
    before = everything(tmp_path)
    result = call(module.main, host, persist=True)
    assert not result["changed"]
    assert set(everything(tmp_path)) - set(before) <= {str(tmp_path / "run/nearmetal/lock")}
    assert {path: time for path, time in everything(tmp_path).items() if path in before} == before
    assert f"{concern.name}: no option was given, and the workload base has nothing for {concern.name}" in result["msg"]
    page = f"roles/{concern.name}/README.md"
    assert f"{page} describes its options, in the role with {concern.name}_ before them: " in result["msg"]
    for option in managed(concern):
        assert f"`{concern.name}_{option}`" in (ROOT / page).read_text("utf-8"), "an option that nobody would learn of"
    assert managed(concern)[0] in result["msg"]
    assert len(result["findings"][0]["reason"]) <= LONGEST_VALUE
    assert [finding["status"] for finding in result["findings"] if finding["concern"] == concern.name] == ["advice"]
    same = call(tune.main, host, concerns={concern.name: None}, check=True)
    assert (same["msg"], same["findings"]) == (result["msg"], result["findings"])


@pytest.mark.parametrize("name", ["xen_hvm", "metal", "nitro"])
def test_where_base_has_something_it_is_applied(name: str, tmp_path: Path, call: Call) -> None:
    host = fresh_host.fresh(tmp_path, name)
    alone = call(clocksource.main, host, check=True)
    based = call(tune.main, host, workload="base", check=True)
    for key in ("actions", "findings"):
        assert alone[key] == [item for item in based[key] if item["concern"] in ("clocksource", "unit")]
    assert call(tune.main, host, concerns={"clocksource": {}}, check=True)["actions"] == alone["actions"]


def test_a_value_of_an_earlier_run_stays(tmp_path: Path, call: Call) -> None:
    host = fresh_host.fresh(tmp_path, "metal")
    assert call(numa.main, host, balancing="disabled")["changed"]
    result = call(numa.main, host)
    assert not result["changed"]
    assert "what an earlier run set stays until state: restored" in result["msg"]
    assert (tmp_path / "proc/sys/kernel/numa_balancing").read_text() == "0\n"
    assert call(numa.main, host, state="restored")["changed"]
    assert (tmp_path / "proc/sys/kernel/numa_balancing").read_text() == "1\n"


def test_a_workloads_value_left_out_by_exclude_is_taken_back_as_before(tmp_path: Path, call: Call) -> None:
    host = fresh_host.fresh(tmp_path, "xen_hvm")
    call(tune.main, host, workload="base")
    excluded = call(tune.main, host, workload="base", exclude=["clocksource.source"])
    assert "nothing was asked" not in excluded["msg"]
    assert excluded["changed"]


@pytest.mark.parametrize("concern", CONCERNS.values(), ids=lambda concern: concern.name)
def test_no_role_decides_by_a_default_of_its_own(concern: Any) -> None:
    defaults = yaml.safe_load((ROOT / f"roles/{concern.name}/defaults/main.yml").read_text("utf-8"))
    assert {f"{concern.name}_{option}" for option in managed(concern)} & set(defaults) == set()


@pytest.mark.parametrize(
    "place", ["README.md", "docs/workloads.md", *(f"roles/{concern.name}/README.md" for concern in CONCERNS.values())]
)
def test_every_document_states_the_rule_in_the_same_words(place: str) -> None:
    assert RULE in (ROOT / place).read_text("utf-8")
