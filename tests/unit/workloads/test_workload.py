# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A workload's playbook lists the same values as the workload's name."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict

import pytest
import yaml
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.planning import Leave, Tune
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.requests import tune_requests
from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads.registry import OWN, WORKLOADS
from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads.workload import values
from ansible_collections.nearmetal.ec2.plugins.modules import tune

from tests.support.fresh_host import fresh

ROOT = Path(__file__).resolve().parents[3]
PLAYBOOKS = ROOT / "playbooks"


@pytest.mark.parametrize("name", sorted(set(WORKLOADS) - {"base"}))
def test_playbook_spells_the_workload_out(name: str) -> None:
    text = (PLAYBOOKS / f"{name}.yml").read_text()
    (play,) = yaml.safe_load(text)
    variables = play["roles"][0]["vars"]
    assert (play["gather_facts"], play["max_fail_percentage"], play["roles"][0]["role"]) == (
        False,
        0,
        "nearmetal.ec2.tune",
    )
    assert play["strategy"] == "linear", "another one doesn't stop at the first host that fails"
    assert play["serial"] == "{{ tune_serial | default([1, '10%']) | nearmetal.ec2.batches }}"
    assert set(variables) == {"tune_workload", "tune_workload_concerns_of", "tune_workload_concerns"}
    assert (variables["tune_workload"], variables["tune_workload_concerns_of"]) == (name, name)
    written, wanted = variables["tune_workload_concerns"], values(WORKLOADS[name])
    assert sorted(written) == sorted(wanted)
    wrong = {
        f"{concern}.{option}": (written[concern].get(option), wanted[concern].get(option))
        for concern in wanted
        for option in {**written[concern], **wanted[concern]}
        if written[concern].get(option) != wanted[concern].get(option)
    }
    assert wrong == {}, f"option → (playbooks/{name}.yml, _workloads/{name}.py)"
    comments = text.replace("\n            # ", " ")
    for choices in WORKLOADS[name].values():
        for choice in choices.values():
            for words in choice.reference.split("; "):
                assert words in comments, f"{name}.yml doesn't say that its reason is {words}"
    spelled_out = tune_requests([name], {}, {}, workload_concerns=variables["tune_workload_concerns"])
    assert spelled_out == tune_requests([name], {}, {})


# The settings of whose gain findings have a figure.
MEASURED = {"clocksource.source", "cpu_power.idle", "network_irq.rps"}


@pytest.mark.parametrize("name", sorted(set(WORKLOADS) - {"base"}))
def test_a_workload_without_a_measured_value_says_so_in_its_first_line(name: str) -> None:
    own = {f"{concern}.{option}" for concern, choices in OWN[name].items() for option in choices}
    first = (PLAYBOOKS / f"{name}.yml").read_text("utf-8").splitlines()[2]
    assert first.startswith("# No value of this workload is measured") is own.isdisjoint(MEASURED)


def test_a_value_deleted_from_a_copied_playbook_is_not_set() -> None:
    copied = values(WORKLOADS["web"])
    del copied["network_stack"]["somaxconn"], copied["hugepages"], copied["clocksource"]["source"]
    requests = {request.name: request for request in tune_requests(["web"], {}, {}, workload_concerns=copied)}
    assert "hugepages" not in requests
    request = requests["network_stack"]
    assert isinstance(request, Tune)
    assert "somaxconn" not in request.wanted.options
    assert request.wanted.options["max_syn_backlog"] == 8192
    assert isinstance(requests["clocksource"], Leave), "nothing is left of it, and base is not asked instead"


def test_a_user_who_repeats_a_value_of_the_workload_owns_it() -> None:
    (request,) = [
        request
        for request in tune_requests(["web"], {"network_stack": {"somaxconn": 4096}}, {})
        if request.name == "network_stack"
    ]
    assert isinstance(request, Tune)
    assert request.wanted.wanted_by("somaxconn") == "user"
    assert request.wanted.wanted_by("max_syn_backlog") == "workload"


def test_every_choice_has_a_reason_and_a_source() -> None:
    for workload in WORKLOADS.values():
        for choices in workload.values():
            for choice in choices.values():
                assert choice.reason
                assert choice.reference


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_what_a_workload_would_set_is_reported_with_its_reason_and_its_source(
    name: str, tmp_path: Path, call: Callable[..., Dict[str, Any]]
) -> None:
    done = call(tune.main, fresh(tmp_path, "metal"), check=True, workload=[name])
    findings = [finding for finding in done["findings"] if finding["status"] == "would_change"]
    explained = {(finding["concern"], finding["knob"]) for finding in findings}
    for finding in [*findings, *done["actions"]]:
        choice = WORKLOADS[name].get(finding["concern"], {}).get(finding["knob"])
        if choice is not None and choice.value != "auto":
            reason = finding["reason"].replace("; only the write shows whether the driver takes it", "")
            assert reason.endswith(f"; for {name}: {choice.reason}")
            assert finding["reference"] == choice.reference
    assert explained


def test_what_a_user_sets_is_reported_without_a_reason_of_the_workload(
    tmp_path: Path, call: Callable[..., Dict[str, Any]]
) -> None:
    copied = values(WORKLOADS["web"])
    copied["hugepages"]["thp"] = "never"
    options = {"concerns": {"network_stack": {"somaxconn": 8192}}, "workload_concerns": copied}
    done = call(
        tune.main, fresh(tmp_path, "metal"), check=True, workload=["web"], workload_concerns_of="web", **options
    )
    of_knob = {finding["knob"]: finding for finding in done["findings"]}
    assert "for web" not in of_knob["somaxconn"]["reason"]
    assert of_knob["somaxconn"]["reference"] != WORKLOADS["web"]["network_stack"]["somaxconn"].reference
    assert "for web" not in of_knob["thp"]["reason"]
    assert "for web" in of_knob["max_syn_backlog"]["reason"]


def test_the_guide_says_what_each_workload_rests_on() -> None:
    section = (ROOT / "docs/ec2.md").read_text(encoding="utf-8").split("\n## Workloads\n")[1].split("\n## ")[0]
    assert [name for name in OWN if f"| `{name}` |" not in section] == []


def test_values_that_all_workloads_share_are_written_once() -> None:
    """A workload that repeats an inherited value would keep it when the base changes."""
    base = values(WORKLOADS["base"])
    for name, workload_choices in OWN.items():
        own_values = values(workload_choices)
        for concern, options in base.items():
            for option, value in options.items():
                assert values(WORKLOADS[name])[concern][option] == own_values.get(concern, {}).get(option, value)
        assert WORKLOADS[name]["network_stack"]["keepalive_time"].value < 350
