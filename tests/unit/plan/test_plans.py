# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans as data: one file per case, in the folder of its concern. Adding a case needs no Python.

host      a file of tests/hosts
changes   path → text of the host's files that differ; null removes one; "/rtnetlink" is what ip(8) would list
wanted    the concern's options; `by` names those that a workload or `auto` wants instead of a user
about     the knobs of the case; without it the case is about all knobs of the concern
plan      each action and finding about these knobs, in order, with the keys that matter: `says` is a part of the
          reason that a reader must find, the others are fields of an action or a finding
error     instead of a plan: parts of the error message
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Dict, List, Sequence

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.registry import CONCERNS
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import observe, project
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import STATUSES, Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.options import COMMON, validate
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.waivers import knobs_of
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._forms.sources import links

from tests.support.hosts import files_of, lay_out
from tests.support.kernel.routes import RoutedHost

FOLDER = Path(__file__).resolve().parent
CASES = sorted(FOLDER.glob("*/*.json"))
# What an operator must ask back about: whose, and who.
UNCLEAR = re.compile(r"\b(?:anew|ours|theirs|told|whom)\b")
BY_NAME = {concern.name: concern for concern in CONCERNS.values()}


@pytest.mark.parametrize("path", CASES, ids=[f"{path.parent.name}/{path.stem}" for path in CASES])
def test_plan(path: Path, tmp_path: Path) -> None:
    case: Dict[str, Any] = json.loads(path.read_text())
    concern = BY_NAME[path.parent.name]
    lay_out(tmp_path, files_of(case["host"], case.get("changes")))
    facts = observe(RoutedHost(str(tmp_path)), ("platform", *concern.domains))
    spec, by = {**COMMON, **concern.options}, case.get("by", {})
    if "error" in case:
        with pytest.raises(NearmetalError) as caught:
            concern.plan(facts, Wanted(validate(concern.name, spec, case["wanted"]), by))
        for part in case["error"]:
            assert part in str(caught.value)
        assert not UNCLEAR.search(str(caught.value))
        return
    wanted = Wanted(validate(concern.name, spec, case["wanted"]), by)
    plan = concern.plan(facts, wanted)
    about = case.get("about")
    assert set(about or ()) <= set(knobs_of(concern)), "the concern has no such knob"
    actions = [action.as_dict() for action in plan.actions if about is None or action.knob in about]
    findings = [finding.as_dict() for finding in plan.findings if about is None or finding.knob in about]
    compare(actions, case["plan"]["actions"])
    compare(findings, case["plan"]["findings"])
    assert all(finding.status in STATUSES and finding.reason and finding.reference for finding in plan.findings)
    assert not [item.reason for item in (*plan.findings, *plan.actions) if UNCLEAR.search(item.reason)]
    assert {finding.knob for finding in plan.findings} <= set(knobs_of(concern)), (
        "a waiver of it would be called misspelt"
    )
    assert all(action.reason and action.reference for action in plan.actions)
    unknown = {
        name for statement in (*plan.findings, *plan.actions) for name, url in links(statement.reference) if not url
    }
    assert not unknown, "sources without an address: name them in plugins/plugin_utils/_forms/sources.json"
    after = concern.plan(project(facts, plan.actions), wanted)
    assert after.actions == (), "the plan doesn't see its own result"


def compare(have: Sequence[Dict[str, Any]], expected: List[Dict[str, Any]]) -> None:
    """As many as expected, in their order, with the keys that the case names."""
    shown = [{key: item[key] for key in ("knob", "status", "what", "after", "reason") if key in item} for item in have]
    assert len(have) == len(expected), shown
    for item, keys in zip(have, expected):
        says = keys.get("says", "")
        assert says in item["reason"], shown
        assert {key: item[key] for key in keys if key != "says"} == {key: keys[key] for key in keys if key != "says"}
