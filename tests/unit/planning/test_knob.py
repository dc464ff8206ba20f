# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What follows from the declaration of a knob: its option, who wants it, its place in a plan, its other owners."""

from __future__ import annotations

from typing import Dict, List, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.registry import CONCERNS
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts import sysctl
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.registry import lever_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Plan, Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.bounds import EVERY, LEAST, MOST, WIDEST
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.concern import Concern
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.knob import (
    BOOT,
    EFFECTS,
    RESTART,
    Knob,
    options_of,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.options import SWITCH, validate
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.waivers import knobs_of

from tests.support.knobs import every_knob

LIMITS = Knob("some", "limits", "network.bql", "a test", SWITCH, "queue.limits", "interfaces")
SENTENCE = "some.queue.limits: this host has no limits"


def test_a_value_that_the_host_cannot_take_is_the_users_error_and_not_applicable_for_a_workload() -> None:
    options = {"queue": {"limits": "enabled"}}
    with pytest.raises(NearmetalError, match=SENTENCE):
        LIMITS.impossible(Wanted(options), SENTENCE)
    plan = LIMITS.at("0000:00:05.0", "ens5").impossible(Wanted(options, {"queue": "workload"}), SENTENCE)
    (finding,) = plan.findings
    assert (finding.status, finding.reason, finding.where) == ("not_applicable", SENTENCE, "0000:00:05.0")


def test_a_suboption_is_an_option_of_its_option() -> None:
    spec = options_of([LIMITS, Knob("some", "length", spec={"type": "int"}, option="queue.length")])
    assert validate("some", spec, {"queue": {"limits": "enabled", "length": 5}})["queue"]["length"] == 5
    assert LIMITS.value({"queue": {"limits": "enabled"}}) == "enabled"
    assert LIMITS.value({"queue": {"length": 5}}) is None
    assert LIMITS.value({}) is None


@pytest.mark.parametrize(
    ("options", "wanted_by"),
    [({"queue": {"limits": "enabled"}}, "workload"), ({"interfaces": [{"name": "ens5"}]}, "user")],
)
def test_wanted_by_names_who_gave_the_option(options: "dict[str, object]", wanted_by: str) -> None:
    assert LIMITS.wanted_by(Wanted(options, {"queue": "workload", "interfaces": "user"})) == wanted_by


def test_checks_and_bounds_follow_from_the_declarations() -> None:
    knobs = (LIMITS, Knob("some", "load", spec={"type": "int"}, bound="least"), Knob("some", "state"))
    concern = Concern(
        "some", options_of(knobs), ("platform",), lambda _facts, _wanted: LIMITS.says("ok", ""), knobs=knobs
    )
    assert (concern.checks, concern.bounds) == (("limits", "state"), {"load": "least"})


def test_rings_are_set_before_interrupts_are_placed() -> None:
    """New rings make a driver request its interrupts again, so an earlier placement would be lost."""
    order = list(CONCERNS)
    assert order.index("smt") < order.index("network_stack") < order.index("network_irq")


@pytest.mark.parametrize("name", CONCERNS)
def test_the_knobs_of_a_place_have_the_same_owners(name: str) -> None:
    """The owner of an action's knob is looked up by its lever and its place."""
    owners: Dict[Tuple[str, str], Tuple[object, ...]] = {}
    for knob in CONCERNS[name].knobs:
        found = (knob.tuned, knob.tuned_words, knob.kubelet)
        place = (knob.lever, knob.place)
        assert owners.setdefault(place, found) == found, f"{knob.name} and another knob of {knob.lever} {knob.place}"


@pytest.mark.parametrize("knob", every_knob(), ids=lambda knob: f"{knob.concern}.{knob.name}")
def test_a_declaration_names_an_option_and_a_lever_that_exist(knob: Knob) -> None:
    options = CONCERNS[knob.concern].options
    assert knob.name in knobs_of(CONCERNS[knob.concern]), "a waiver of it would be called misspelt"
    if knob.spec is not None:
        of_devices = options[knob.within].get("options", {}) if knob.within else {}
        assert (knob.option or knob.name).partition(".")[0] in {**options, **of_devices}
    assert not knob.within or knob.within in options
    if knob.lever and knob.lever != "files":
        assert lever_of(knob.lever).disruptive == knob.disruptive, "the way back would be told as what it isn't"
    if knob.lever == "sysctl":
        assert knob.place in sysctl.KEYS, "declare its key where the lever finds it"
    assert knob.bound in ("", LEAST, MOST, WIDEST, EVERY)


@pytest.mark.parametrize("knob", every_knob(), ids=lambda knob: f"{knob.concern}.{knob.name} {knob.place}")
def test_a_setting_that_is_changed_says_when_it_takes_effect(knob: Knob) -> None:
    """A setting without this would never be compared by prove."""
    assert knob.takes_effect in EFFECTS if knob.lever else knob.takes_effect in ("", "boot")
    assert (knob.takes_effect == "boot") >= (knob.scope == "boot"), "what runs doesn't change"


@pytest.mark.parametrize(
    ("setting", "takes_effect"),
    [
        ("network_stack.somaxconn", {"listen"}),  # __sys_listen()
        ("network_stack.tcp_rmem", {"listen"}),  # tcp_init_sock(); tcp(7): before listen() or connect()
        ("network_stack.busy_poll", {"at_once", "listen"}),  # poll() itself; sock_init_data()
        ("network_stack.congestion_control", {"new_connections"}),  # tcp_ca_openreq_child()
        ("network_stack.mtu_probing", {"new_connections"}),  # tcp_mtup_init()
        ("network_stack.slow_start_after_idle", {"at_once"}),  # tcp_slow_start_after_idle_check()
        ("network_stack.qdisc", {"interface_up"}),  # attach_default_qdiscs()
        ("network_stack.netdev_max_backlog", {"limit"}),  # enqueue_to_backlog()
        ("block_storage.read_ahead_kb", {"open"}),  # file_ra_state_init()
        ("block_storage.scheduler", {"at_once"}),  # elevator_switch()
        ("hugepages.thp", {"new_memory"}),  # the page fault
        ("hugepages.khugepaged_defrag", {"slowly"}),
        ("memory.ksm", {"slowly"}),
        ("memory.max_map_count", {"limit"}),  # do_mmap()
        ("numa.balancing", {"slowly"}),
        ("numa.nodes", {"boot"}),
        ("clocksource.source", {"at_once"}),
    ],
)
def test_it_is_what_the_kernel_does(setting: str, takes_effect: "set[str]") -> None:
    name, _dot, knob = setting.partition(".")
    assert {declared.takes_effect for declared in CONCERNS[name].knobs if declared.name == knob} == takes_effect


def test_a_setting_is_felt_when_all_of_it_is() -> None:
    of_one_name = (Knob("some", "poll", "a", takes_effect="at_once"), Knob("some", "poll", "b", takes_effect="listen"))
    forgotten = Knob("some", "new", "a")
    at_boot = Knob("some", "method", "boot.arguments", scope="boot", takes_effect="boot")
    concern = Concern("some", {}, (), lambda _facts, _wanted: Plan(), knobs=(*of_one_name, forgotten, at_boot))
    assert "a listening socket keeps its backlog" in concern.unfelt("poll")
    assert concern.unfelt("new") == "nobody has said when it takes effect"
    assert concern.unfelt("method") == "", "its findings say that it needs a reboot"


def test_a_boot_starts_programs_anew_but_reaches_no_limit_and_waits_for_nothing() -> None:
    def unfelt(after: str) -> List[str]:
        return [kind for kind in EFFECTS if Knob("some", "one", "a", takes_effect=kind).unfelt(after)]

    assert unfelt(BOOT) == ["slowly", "limit"]
    assert unfelt(RESTART) == ["interface_up", "slowly", "limit", "boot"]
    assert unfelt("") == [kind for kind in EFFECTS if kind != "at_once"]
