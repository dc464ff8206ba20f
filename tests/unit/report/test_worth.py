# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict of a report, and the order of what would help."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils import _measured
from ansible_collections.nearmetal.ec2.plugins.modules import tune
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report import commands, summary, worth
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report.collect import Collector

from tests.support.fake_kernel import FakeKernel
from tests.support.fleet import GOOD_CLOCK, SLOW_CLOCK, finding, result_with
from tests.support.hosts import files_of
from tests.support.report import reports

Call = Callable[..., Dict[str, Any]]

PAGES = finding("hugepages", "would_change", "thp", now="always", wanted="madvise")
RINGS = finding("network_stack", "would_change", "rx", now=512, wanted=1024)
ARGUMENT = finding("smt", "would_change", "threads", now=2, wanted=1)
KEPT = finding("clocksource", "would_change", "persist")
CLOCK_ALONE = " in the 1 of 13 concerns that were looked at"


def action(concern: str, knob: str, **more: Any) -> Dict[str, Any]:
    return {"concern": concern, "knob": knob, "what": "w", "before": 1, "after": 2, "scope": "runtime", **more}


def test_the_verdict_counts_settings_and_says_what_they_are_worth_and_risk() -> None:
    risky = result_with(SLOW_CLOCK, PAGES, RINGS, ARGUMENT, KEPT)
    risky["actions"] = [
        action("network_stack", "rx", disruptive=True),
        action("smt", "threads", scope="boot"),
    ]
    report = reports.report({**risky, "workload": ["web"]}, result_with(PAGES), result_with(GOOD_CLOCK))
    found = worth.verdict(report)
    assert found.lead == "5 settings on 2 of 3 hosts can be tuned better."
    assert found.planned == "base on 2 hosts (no tune_workload), web on 1 host; 4 of 13 concerns"
    assert dict(found.facts) == {
        "Worth": "1 with a published figure, 4 unmeasured",
        "Risk": "1 may interrupt traffic or work for a moment on 1 host; 1 takes effect after a reboot on 1 host;"
        " 3 without either",
        "Kept over reboots": "by 1 file or unit",
        "Not looked at": "cpu_power, memory, numa, kernel_check, network_irq, network_routes, block_storage,"
        " blkfront_check, service_check",
        "Next": f"h1, h2 have no tune_workload: {worth._NAME_WORKLOADS}",
    }


def test_a_change_that_we_measured_without_a_gain_is_not_called_unmeasured_and_comes_last() -> None:
    measured = finding("hugepages", "would_change", "thp", gain=_measured.FIGURES[1].gain)
    (host,) = reports.report(result_with(measured, RINGS)).hosts
    assert [worth.worth_of(host, one) for one in host.findings] == [worth.NO_GAIN, worth.UNMEASURED]
    found = worth.verdict(reports.report(result_with(measured, RINGS)))
    assert dict(found.facts)["Worth"] == "1 unmeasured, 1 without a gain when measured"


def test_a_change_that_we_measured_as_a_loss_is_called_slower_and_comes_after_those_without_a_gain() -> None:
    (loss,) = (figure.gain for figure in _measured.FIGURES if figure.loses)
    assert loss.startswith("slower when measured on an emulated host")
    slower = finding("network_irq", "would_change", "rps", gain=loss)
    same = finding("hugepages", "would_change", "thp", gain=_measured.FIGURES[1].gain)
    found = worth.verdict(reports.report(result_with(slower, same, RINGS)))
    assert dict(found.facts)["Worth"] == "1 unmeasured, 1 without a gain when measured, 1 slower when measured"
    assert dict(found.facts)["Slower when measured"].endswith(": leave it out with tune_exclude or tune_waivers")
    tops = summary.top_findings(reports.report(result_with(slower, same, RINGS)))
    assert [top.name for top in tops] == ["network_stack.rx", "hugepages.thp", "network_irq.rps"]
    assert tops[-1].fix == "leave it out with tune_exclude or tune_waivers"
    assert worth.verdict(reports.report(result_with(slower))).lead.endswith("without proof that any of it helps.")
    (host,) = reports.report(result_with(RINGS)).hosts
    worse = dataclasses.replace(host, proven={"tested": ["network_stack.rx"], "verdict": "worse"})
    assert worth.worth_of(worse, worse.findings[0]) == worth.LOSS


def test_what_was_measured_as_slower_is_left_out_of_the_command_for_the_rest() -> None:
    (loss,) = (figure.gain for figure in _measured.FIGURES if figure.loses)
    slower = finding("network_irq", "would_change", "rps", gain=loss)
    report = reports.report(result_with(slower, RINGS))
    start = "ansible-playbook nearmetal.ec2.tune -i hosts.yml"
    without = "without network_irq.rps, slower when measured"
    assert summary.everything(report) == (f"{start} --limit h0 -e tune_exclude=network_irq.rps", without)
    given = dataclasses.replace(report.run, command=(*reports.COMMAND, "-e", "tune_exclude=smt.threads"))
    fix, said = summary.everything(dataclasses.replace(report, run=given))
    assert (fix.split(" -e ")[-1], said) == ("tune_exclude=smt.threads,network_irq.rps", without)
    assert summary.everything(reports.report(result_with(RINGS))) == (f"{start} --limit h0", "")
    assert summary.everything(reports.report(result_with(slower))) == ("", ""), "nothing else is left to do"
    own = dataclasses.replace(report.run, command=("ansible-playbook", "site.yml"))
    assert summary.everything(dataclasses.replace(report, run=own)) == ("ansible-playbook site.yml --limit h0", "")


def test_the_reason_and_the_gain_of_a_finding_are_of_one_host() -> None:
    often = result_with({**PAGES, "reason": "for web: often"})
    measured = result_with({**PAGES, "reason": "for hpc: measured", "gain": "AWS, 2017: twice as fast"})
    (top,) = summary.top_findings(reports.report(often, often, measured))
    assert (top.reason, top.gain) == ("for hpc: measured", "1 of 3 hosts: AWS, 2017: twice as fast")
    assert summary.top_findings(reports.report(often, measured, often))[0].other_reasons == 1


def test_what_keeps_values_comes_with_them_where_they_are_to_be_set() -> None:
    agent = finding("unit", "would_change", "agent")
    fixes = {top.name: top.fix for top in summary.top_findings(reports.report(result_with(SLOW_CLOCK, KEPT, agent)))}
    assert fixes["clocksource.persist"] == "comes with the settings of clocksource that it keeps"
    assert fixes["unit.agent"] == "comes with the settings that it keeps"
    fixes = {top.name: top.fix for top in summary.top_findings(reports.report(result_with(GOOD_CLOCK, KEPT, agent)))}
    assert fixes["clocksource.persist"].endswith("--limit h0 -e tune_only=clocksource")
    assert fixes["unit.agent"].endswith("--limit h0")


def test_a_gain_that_holds_for_some_of_the_hosts_says_for_how_many() -> None:
    measured = {**PAGES, "gain": "no gain measured"}
    (top,) = summary.top_findings(reports.report(result_with(PAGES), result_with(measured), result_with(PAGES)))
    assert (top.worth, top.gain) == (worth.UNMEASURED, "1 of 3 hosts: no gain measured")
    (top,) = summary.top_findings(reports.report(result_with(measured), result_with(measured)))
    assert top.gain == "no gain measured"


def test_what_a_service_keeps_until_it_starts_anew_is_no_setting_to_tune() -> None:
    kept = finding("hugepages", "needs_restart", "thp", where="redis-server")
    report = reports.report(result_with(PAGES, kept, finding("numa", "needs_restart", "policy")), result_with(kept))
    found = worth.verdict(report)
    assert found.lead == "1 setting on 1 of 2 hosts can be tuned better, without proof that any of it helps."
    facts = dict(found.facts)
    assert facts["Worth"] == "1 unmeasured"
    assert facts["Risk"] == (
        "none interrupts anything or needs a reboot;"
        " 3 more settings take effect only after a restart of their services on 2 hosts"
    )
    risks = {(top.concern, top.status): worth.RISK[top.risk] for top in summary.top_findings(report)}
    assert risks == {
        ("hugepages", "would_change"): "no interruption",
        ("hugepages", "needs_restart"): "restart of the service",
        ("numa", "needs_restart"): "restart of the service",
    }
    alone = "1 setting takes effect only after a restart of its service on 1 host"
    left = worth.verdict(reports.report(result_with(kept)))
    assert (left.lead, dict(left.facts)["Risk"]) == (
        f"Nothing is left to change on 1 host{CLOCK_ALONE}; {alone}.",
        alone,
    )
    for mode, done in (
        ("tune", "was changed and verified, without proof that any of it helps"),
        ("restore", "was given back"),
    ):
        ran = dataclasses.replace(reports.RUN, mode=mode)
        changed = dataclasses.replace(reports.report(result_with({**PAGES, "status": "changed"}, kept)), run=ran)
        assert worth.verdict(changed).lead == f"1 setting on this host {done}; {alone}."


def test_the_next_command_is_for_the_hosts_of_this_run() -> None:
    run = dataclasses.replace(reports.RUN, limit="web:!web-1")
    found = worth.verdict(reports.collector({"h": result_with(GOOD_CLOCK)}).report(run))
    assert found.command.endswith("-i hosts.yml --limit 'web:!web-1' -e tune_workload=auto -e tune_workload_auto=apply")


def test_a_host_that_auto_only_advised_is_not_done() -> None:
    auto = {**finding("tune", "advice", "workload", wanted="in_memory_database"), "where": "in_memory_database"}
    none = finding("tune", "advice", "workload", wanted="base")
    run = dataclasses.replace(reports.RUN, command=(*reports.COMMAND, "-e", "tune_workload=auto"))
    advised = {"redis": result_with(GOOD_CLOCK, auto), "idle": result_with(GOOD_CLOCK, none)}
    found = worth.verdict(reports.collector(advised).report(run))
    assert found.lead == (
        f"Nothing is left to change on 2 hosts{CLOCK_ALONE};"
        " 1 host runs what in_memory_database is for, and was planned for base alone."
    )
    assert dict(found.facts)["Next"] == "tune_workload_auto: apply plans redis for what runs there"
    assert found.command == (
        "ansible-playbook nearmetal.ec2.audit -i hosts.yml -e tune_workload=auto -e tune_workload_auto=apply"
    )
    applied = {**auto, "status": "ok"}
    done = worth.verdict(reports.report(result_with(GOOD_CLOCK, applied, workload="in_memory_database")))
    assert (done.lead, done.command) == (f"Nothing is left to change on 1 host{CLOCK_ALONE}.", "")


def test_the_verdict_of_hosts_that_need_nothing_or_said_nothing() -> None:
    assert (
        worth.verdict(reports.report(result_with(GOOD_CLOCK))).lead
        == f"Nothing is left to change on 1 host{CLOCK_ALONE}."
    )
    kept = worth.verdict(reports.report(result_with(GOOD_CLOCK, KEPT))).lead
    assert kept == f"Nothing but what keeps values over reboots is left to change on 1 host{CLOCK_ALONE}."
    collected = Collector()
    collected.add("a", result_with(GOOD_CLOCK))
    collected.unreachable("b", "no route")
    found = worth.verdict(collected.report(reports.RUN))
    assert found.lead == f"Nothing is left to change on 1 host{CLOCK_ALONE}; 1 host was unreachable."
    assert dict(found.facts)["Without a full report"] == "b (unreachable)"
    assert worth.verdict(Collector().report(reports.RUN)).lead == "The play had no hosts."
    refused = reports.report(result_with(finding("clocksource", "refused")))
    assert worth.verdict(refused).lead == f"Nothing is left to change on 1 host{CLOCK_ALONE}; 1 setting was refused."
    two = reports.report(result_with(finding("smt", "refused"), finding("numa", "refused")), result_with(GOOD_CLOCK))
    assert (
        worth.verdict(two).lead
        == "Nothing is left to change on 2 hosts in the 3 of 13 concerns that were looked at; 2 settings were refused."
    )
    back = dataclasses.replace(reports.report(result_with()), run=dataclasses.replace(reports.RUN, mode="restore"))
    assert worth.verdict(back).lead == "Nothing is left to give back on 1 host."
    one = worth.verdict(reports.report(result_with(PAGES)))
    assert one.lead == "1 setting on this host can be tuned better, without proof that any of it helps."
    known = worth.verdict(reports.report(result_with(SLOW_CLOCK), result_with(PAGES)))
    assert known.lead == "2 settings on 2 of 2 hosts can be tuned better."
    assert dict(one.facts)["Risk"] == "none interrupts anything or needs a reboot"


def test_a_role_without_any_option_was_asked_for_nothing() -> None:
    idle = {**result_with(finding("hugepages", "advice", "state")), "workload": []}
    alone = worth.verdict(reports.report(idle))
    assert (alone.lead, alone.planned, alone.facts) == ("Nothing of hugepages was asked for on 1 host.", "", ())
    both = worth.verdict(reports.report(idle, result_with(GOOD_CLOCK)))
    assert both.lead == (
        f"Nothing is left to change on 1 host{CLOCK_ALONE}; nothing of hugepages was asked for on 1 host."
    )
    advised = result_with(finding("hugepages", "advice", "state"), GOOD_CLOCK)
    assert worth.verdict(reports.report(advised)).lead.startswith("Nothing is left to change on 1 host in the 2 of 13")


WORDS = {
    "failed": ("1 host failed", "2 hosts failed"),
    "unreachable": ("1 host was unreachable", "2 hosts were unreachable"),
    "skipped": ("1 host was skipped", "2 hosts were skipped"),
    "silent": ("1 host gave no result", "2 hosts gave no result"),
}


def without_report(collected: Collector, state: str, *names: str, result: Any = None) -> Collector:
    """These hosts in this state, with an earlier result if one is given."""
    collected.expect(names)
    for name in names:
        if result is not None:
            collected.add(name, result)
        if state == "skipped":
            collected.skipped([name])
        elif state != "silent":
            getattr(collected, state)(name, "why")
    return collected


@pytest.mark.parametrize("mode", ["audit", "tune", "restore"])
@pytest.mark.parametrize("state", WORDS)
def test_a_host_without_a_report_counts_under_its_own_word_alone(state: str, mode: str) -> None:
    run = dataclasses.replace(reports.RUN, mode=mode)
    single, plural = WORDS[state]
    assert worth.verdict(without_report(Collector(), state, "x").report(run)).lead == f"{single}."
    assert worth.verdict(without_report(Collector(), state, "x", "y").report(run)).lead == f"{plural}."
    beside_good = without_report(reports.collector({"a": result_with(GOOD_CLOCK)}), state, "x").report(run)
    nothing = "give back on 1 host" if mode == "restore" else f"change on 1 host{CLOCK_ALONE}"
    assert worth.verdict(beside_good).lead == f"Nothing is left to {nothing}; {single}."
    beside_slow = without_report(reports.collector({"a": result_with(SLOW_CLOCK)}), state, "x", "y").report(run)
    waiting = "1 setting wasn't changed" if mode == "tune" else "1 setting on 1 of 3 hosts "
    assert worth.verdict(beside_slow).lead.startswith(waiting)
    assert worth.verdict(beside_slow).lead.endswith(f"; {plural}.")
    assert dict(worth.verdict(beside_slow).facts)["Without a full report"] == f"x ({state}), y ({state})"


@pytest.mark.parametrize("state", ["failed", "unreachable"])
@pytest.mark.parametrize("before", [GOOD_CLOCK, SLOW_CLOCK])
def test_what_a_host_said_before_it_failed_makes_it_neither_done_nor_to_do(state: str, before: Dict[str, Any]) -> None:
    lost = without_report(Collector(), state, "x", result=result_with(before))
    assert worth.verdict(lost.report(reports.RUN)).lead == f"{WORDS[state][0]}."


def test_restore_in_check_mode_has_given_nothing_back() -> None:
    run = dataclasses.replace(reports.RUN, mode="restore")
    would = result_with({**PAGES, "status": "would_change"}, {**RINGS, "status": "advice"})
    shown = dataclasses.replace(reports.report(would), run=run)
    assert worth.verdict(shown).lead == "1 setting on this host would be given back; 1 setting was left as it is."
    done = result_with({**PAGES, "status": "changed"}, {**RINGS, "status": "needs_reboot"})
    given = dataclasses.replace(reports.report(done), run=run)
    assert worth.verdict(given).lead == (
        "1 setting on this host was given back; 1 setting has its value from before after a reboot."
    )


def test_what_a_failed_tune_did_not_reach_was_not_changed() -> None:
    run = dataclasses.replace(reports.RUN, mode="tune")
    half = result_with({**PAGES, "status": "changed"}, RINGS, errors={"smt": "busy"})
    lead = worth.verdict(dataclasses.replace(reports.report(half), run=run)).lead
    assert lead.startswith("1 setting on this host was changed and verified")
    assert lead.endswith("; 1 setting wasn't changed; 1 concern failed.")


def test_hosts_without_a_workload_are_named_among_others() -> None:
    web = result_with(GOOD_CLOCK, workload="web")
    mixed = reports.collector({"w": web, "d1": result_with(GOOD_CLOCK), "d2": result_with(SLOW_CLOCK)})
    asked = dict(worth.verdict(mixed.report(reports.RUN)).facts)["Next"]
    assert asked.startswith("d1, d2 have no tune_workload: say in tune_workload what the hosts do, in group_vars ")
    every = reports.collector({"w": web, "v": web})
    assert "Next" not in dict(worth.verdict(every.report(reports.RUN)).facts)


def outside(host_class: str) -> Dict[str, Any]:
    """What a host gives that isn't looked at for its class."""
    why = {"not_ec2": "this host doesn't look like EC2; allow it", "container": "this is a container: its kernel"}
    held = [
        finding(concern, status, reason=why[host_class])
        for concern, status in (("clocksource", "refused"), ("kernel_check", "not_applicable"))
    ]
    return {**result_with(*held), "platform": {"host_class": host_class}}


@pytest.mark.parametrize(
    ("host_class", "words"),
    [
        ("not_ec2", "1 host isn't on EC2, and nothing was looked at there"),
        ("container", "1 host is a container, and nothing was looked at there"),
    ],
)
def test_a_host_outside_ec2_was_not_looked_at(host_class: str, words: str) -> None:
    away = outside(host_class)
    alone = worth.verdict(reports.report(away))
    assert alone.lead == f"{words}."
    assert alone.planned == ""
    asked = {**away, "findings": [*away["findings"], finding("tune", "advice", "workload")]}
    assert worth.verdict(reports.report(asked)).lead == f"{words}.", "auto looks at programs alone"
    assert ("tune_allow_not_ec2" in dict(alone.facts).get("Next", "")) == (host_class == "not_ec2")
    both = worth.verdict(reports.report(away, result_with(GOOD_CLOCK)))
    assert both.lead == f"Nothing is left to change on 1 host{CLOCK_ALONE}; {words}."
    assert both.planned.startswith("base on 1 host")
    steps = [words for name, words in both.facts if name == "Next"]
    assert steps[-1].startswith("say in tune_workload")
    assert "tune_workload=auto" in both.command
    assert len(steps) == (2 if host_class == "not_ec2" else 1)


def test_a_run_of_a_single_role_is_named_after_its_concern() -> None:
    role = {**outside("not_ec2"), "workload": []}
    concern = role["findings"][0]["concern"]
    next_step = dict(worth.verdict(reports.report(role)).facts)["Next"]
    assert next_step == f"{concern}_allow_not_ec2: true looks at hosts outside EC2 too"
    done = worth.verdict(reports.report({**result_with(GOOD_CLOCK), "workload": []}))
    assert done.planned == "clocksource; 1 of 13 concerns"


def test_a_host_outside_ec2_that_may_be_tuned_is_one_of_the_others() -> None:
    allowed = {**result_with(GOOD_CLOCK), "platform": {"host_class": "not_ec2"}}
    assert worth.verdict(reports.report(allowed)).lead == f"Nothing is left to change on 1 host{CLOCK_ALONE}."


@pytest.mark.parametrize("workload", ["base", "web"])
def test_a_run_that_is_limited_to_what_nobody_wants_says_so(workload: str, tmp_path: Path, call: Call) -> None:
    """Also on a host outside EC2 that may be tuned: nothing of it was held back for that."""
    for kind in ("nitro", "not_ec2"):
        asked = {"workload": workload, "only": ["hugepages.thp_defrag", "numa"], "allow_not_ec2": True}
        result = call(tune.main, FakeKernel(tmp_path / kind, files_of(kind)), check=True, **asked)
        found = worth.verdict(reports.report(result))
        assert found.lead == (
            f"tune_only names hugepages.thp_defrag, numa, which neither {workload} nor tune_concerns wants on 1 host."
        )
        assert dict(found.facts) == {"Next": "set in tune_concerns what tune_only names, or leave it out of tune_only"}
        assert (found.planned, found.command) == ("", "")
    beside = worth.verdict(reports.report(result, result_with(GOOD_CLOCK)))
    assert beside.lead.startswith(f"Nothing is left to change on 1 host{CLOCK_ALONE}; tune_only names hugepages.thp_")


def test_a_concern_that_failed_on_a_host_that_went_on_is_no_all_clear() -> None:
    ill = result_with(GOOD_CLOCK, errors={"smt": "busy"})
    assert worth.verdict(reports.report(ill)).lead == "1 concern failed."
    both = reports.report(ill, result_with(GOOD_CLOCK))
    assert worth.verdict(both).lead == (
        "Nothing is left to change on 1 host in the 2 of 13 concerns that were looked at; 1 concern failed."
    )
    pages = {**PAGES, "status": "changed"}
    tried = result_with({**SLOW_CLOCK, "concern": "smt"}, pages, errors={"smt": "busy", "numa": "gone"})
    changed = dataclasses.replace(reports.report(tried), run=dataclasses.replace(reports.RUN, mode="tune"))
    assert worth.verdict(changed).lead == (
        "1 setting on this host was changed and verified, without proof that any of it helps; 2 concerns failed."
    )


def test_what_helps_most_is_known_to_help_then_costs_least_then_helps_most_hosts() -> None:
    risky = result_with(RINGS, ARGUMENT, SLOW_CLOCK, KEPT)
    risky["actions"] = [action("network_stack", "rx", disruptive=True), action("smt", "threads", scope="boot")]
    tops = summary.top_findings(reports.report(risky, result_with(PAGES, RINGS), result_with(RINGS, ARGUMENT)))
    assert [(top.concern, top.worth, top.risk) for top in tops] == [
        ("clocksource", "published", "free"),
        ("hugepages", "unmeasured", "free"),
        ("smt", "unmeasured", "reboot"),
        ("network_stack", "unmeasured", "interrupts"),
        ("clocksource", "unmeasured", "free"),
    ]
    assert commands.preview(tops[0].fix) == f"{tops[0].fix} --check --diff"
    assert commands.preview("reboot when it suits: h0") == ""
