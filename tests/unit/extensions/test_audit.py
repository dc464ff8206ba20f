# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The queries by which Automation Platform counts instances, run by jq on results of the modules."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict

import jq
import pytest
import yaml

from tests.support.aws.fake_aws import FakeAws

ROOT = Path(__file__).resolve().parents[3]
QUERIES: Dict[str, Dict[str, str]] = yaml.safe_load((ROOT / "extensions/audit/event_query.yml").read_text())


@pytest.mark.parametrize("module", QUERIES)
def test_a_query_counts_each_instance_of_a_result_once(run: Any, aws: FakeAws, module: str) -> None:
    names = [aws.add(1), aws.add(2)]
    result = run(module.rpartition(".")[2], check=True, instance_ids=names)
    counted = jq.compile(QUERIES[module]["query"]).input_value(result).all()
    assert [node["name"] for node in counted] == sorted(names)
    assert [node["canonical_facts"] for node in counted] == [{"instance_id": name} for name in sorted(names)]
    assert jq.compile(QUERIES[module]["query"]).input_value({"failed": True, "msg": "no"}).all() == []


def test_the_modules_that_change_what_belongs_to_instances_are_counted() -> None:
    documented = ROOT / "docs/iam"
    changing = {path.name.removesuffix("-change.json") for path in documented.glob("*-change.json")}
    assert {name.rpartition(".")[2] for name in QUERIES} == changing
