# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans as data: one file per case, in the folder of its concern, with a line for each change, action and finding.

Adding a case needs no Python.

host      a file of tests/hosts, or a list of several that have the same plan
changes   path → text of the host's files that differ, * for each that matches; null removes one; "/rtnetlink" is what
          ip(8) would list
wanted    the concern's options; `by` names those that a workload or `auto` wants instead of a user
about     the knob of the case, or a list of several; without it the case is about all knobs of the concern
actions, findings
          each action and finding about these knobs, in order, with the keys that matter: `says` is a part of the
          reason that a reader must find, the others are fields of an action or a finding. A list left out is empty
persist   the file that would set it at each boot, or the unit that would: the last finding
error     instead of a plan: parts of the error message
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List, Sequence, Union

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.registry import CONCERNS
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import observe, project
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import STATUSES, Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.options import COMMON, validate
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.unit import SERVICE_NAME
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.waivers import knobs_of
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._forms.sources import links

from tests.support.hosts import files_of, lay_out
from tests.support.kernel.routes import RoutedHost
from tests.support.sentence import UNCLEAR


def listed(value: Union[str, List[str]]) -> List[str]:
    """A list of one or of several."""
    return [value] if isinstance(value, str) else value


FOLDER = Path(__file__).resolve().parent
CASES: Dict[str, Dict[str, Any]] = {
    f"{path.parent.name}/{path.stem}": json.loads(path.read_text()) for path in sorted(FOLDER.glob("*/*.json"))
}
ON_HOSTS = [
    pytest.param(name, host, id=name if host == case["host"] else f"{name}-{host}")
    for name, case in CASES.items()
    for host in listed(case["host"])
]
KEYS = {"host", "changes", "wanted", "by", "about", "actions", "findings", "persist", "error"}
BY_NAME = {concern.name: concern for concern in CONCERNS.values()}


@pytest.mark.parametrize(("name", "host"), ON_HOSTS)
def test_plan(name: str, host: str, tmp_path: Path) -> None:
    case = CASES[name]
    assert set(case) <= KEYS
    concern = BY_NAME[name.partition("/")[0]]
    lay_out(tmp_path, files_of(host, case.get("changes")))
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
    about = listed(case.get("about", knobs_of(concern)))
    assert set(about) <= set(knobs_of(concern)), "the concern has no such knob"
    expected = list(case.get("findings", ()))
    if "persist" in case:
        file = "" if case["persist"] == SERVICE_NAME else case["persist"]
        expected.append({"knob": "persist", "status": "would_change", "where": file, "wanted": case["persist"]})
    compare([action.as_dict() for action in plan.actions if action.knob in about], case.get("actions", []))
    compare([finding.as_dict() for finding in plan.findings if finding.knob in about], expected)
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


def test_each_check_is_in_a_case() -> None:
    for concern in CONCERNS.values():
        cases = [case for name, case in CASES.items() if name.startswith(f"{concern.name}/")]
        named = {item.get("knob") for case in cases for item in case.get("findings", ())}
        named.update(knob for case in cases for knob in listed(case.get("about", [])))
        assert set(concern.checks) <= named


def compare(have: Sequence[Dict[str, Any]], expected: List[Dict[str, Any]]) -> None:
    """As many as expected, in their order, with the keys that the case names."""
    shown = [{key: item[key] for key in ("knob", "status", "what", "after", "reason") if key in item} for item in have]
    assert len(have) == len(expected), shown
    for item, keys in zip(have, expected):
        says = keys.get("says", "")
        assert says in item["reason"], shown
        assert {key: item[key] for key in keys if key != "says"} == {key: keys[key] for key in keys if key != "says"}
