# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/workloads.md: its variables are what tune takes, and it names every workload."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.registry import CONCERNS
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.planning import Tune
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.requests import tune_requests
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.bounds import EVERY, LEAST, MOST, WIDEST
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.programs import SIGNS
from ansible_collections.nearmetal.ec2.plugins.module_utils._requests.choice import ADVISE, choose
from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads.registry import OWN

from dev import ROOT
from dev.gates import Copy
from dev.generate.documents import documentation, paragraphs

DOCS = ROOT / "docs"
BOUNDS = {LEAST: "a minimum", MOST: "a maximum", WIDEST: "a minimum width"}
GUIDE = (DOCS / "workloads.md").read_text("utf-8")


def test_every_workload_is_named_and_linked() -> None:
    linked = dict(re.findall(r"\| \[`([a-z_]+)`\]\(([^)]+)\)", GUIDE))
    assert set(linked) == set(OWN)
    for target in re.findall(r"\]\(([^)#]+)\)", GUIDE):
        assert (DOCS / target).exists(), target


def test_the_variables_are_what_tune_takes(tmp_path: Path) -> None:
    own, several, auto = (yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", GUIDE, re.S))
    requests = tune_requests(
        [own["tune_workload"]],
        own["tune_concerns"],
        {},
        exclude=own["tune_exclude"],
        waivers=own["tune_waivers"],
    )
    wanted = {request.name: request.wanted.options for request in requests if isinstance(request, Tune)}
    assert wanted["network_stack"]["somaxconn"] == 16384
    assert "turbo" not in wanted["cpu_power"]
    assert wanted["hugepages"]["waivers"][0]["knob"] == "thp"
    host = WritableHost(str(tmp_path))
    assert choose(host, several["tune_workload"], ADVISE, {}).names == ("web", "cache")
    assert choose(host, [auto["tune_workload"]], auto["tune_workload_auto"], {}).names == ("base",)


def test_the_programs_are_those_that_are_recognized() -> None:
    """The rows are in the order in which their workloads are combined."""
    section = GUIDE.split("## What runs on the host")[1].split("\n## ")[0]
    rows = dict(re.findall(r"^\| `([a-z_]+)` \| (.*) \|$", section, re.M))
    assert list(rows) == list(dict.fromkeys(sign.workload for sign in SIGNS.values()))
    for name, sign in SIGNS.items():
        assert re.search(rf"\b{name}\b", rows[sign.workload]), name


@pytest.mark.parametrize("name", CONCERNS)
def test_an_option_says_that_a_value_of_a_workload_is_a_bound(name: str) -> None:
    options = documentation(Copy(ROOT), name)["options"]
    for option, bound in CONCERNS[name].bounds.items():
        if bound != EVERY:
            said = re.search(r"A workload's value is (a [a-z ]+)", " ".join(paragraphs(options[option])))
            assert said, f"{name}.{option}: say that a workload's value is {BOUNDS[bound]}"
            assert said[1] == BOUNDS[bound]
