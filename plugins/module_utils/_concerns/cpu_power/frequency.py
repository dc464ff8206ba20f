# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""cpu_power: turbo, governor and energy preference. Pure. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Tuple

from ..._facts.facts import Facts
from ..._facts.power import CPUFREQ, FIXING, PowerFacts
from ..._facts.sys_files import TURBO
from ..._plan import Plan, Wanted, joined
from ..._planning.knob import Knob
from ..._words import plain

NAME = "cpu_power"
# Xeons of the E5 and E7 lines, then Skylake (x1xx) and Cascade Lake (x2xx) of the scalable line.
_BEFORE_ICE_LAKE = r"\bE[57]-|\b(?:Platinum|Gold) [5-9][12][0-9]{2}"
NO_FREQUENCIES = "this host has no {0}: its type runs at the frequency that the hypervisor gives it"


REFERENCE = "AWS, 2017"
_TURBO = Knob(
    NAME,
    "turbo",
    "power.turbo",
    REFERENCE,
    {"type": "str", "choices": ["kernel", "enabled", "disabled"]},
    takes_effect="at_once",
    # Both files, as each driver has its own: systemd-tmpfiles skips a missing one.
    at_boot=TURBO.at_boot,
    tuned=("cpu.no_turbo", "cpu.boost"),
    tuned_words={
        "cpu.no_turbo": {"1": "disabled", "true": "disabled", "0": "enabled", "false": "enabled"},
        "cpu.boost": {"1": "enabled", "true": "enabled", "0": "disabled", "false": "disabled"},
    },
    comparable=True,
)
_GOVERNOR = Knob(
    NAME,
    "governor",
    "power.governors",
    REFERENCE,
    {"type": "str"},
    takes_effect="at_once",
    at_boot={f"{CPUFREQ}/policy*/scaling_governor": {}},
    tuned=("cpu.governor",),
    comparable=True,
)
_PREFERENCE = Knob(
    NAME,
    "energy_performance_preference",
    "power.preferences",
    REFERENCE,
    {"type": "str"},
    takes_effect="at_once",
    at_boot={f"{CPUFREQ}/policy*/energy_performance_preference": {}},
    tuned=("cpu.energy_performance_preference", "cpu.energy_perf_bias"),
    comparable=True,
)
KNOBS = (_TURBO, _GOVERNOR, _PREFERENCE)


def plan(facts: Facts, wanted: Wanted) -> Plan:
    """The plan of frequencies. Raises NearmetalError when a word is forced that the host doesn't offer."""
    plans = [
        _table(facts.power, wanted, knob, knob.value(wanted))
        for knob in _in_order(facts.power)
        if knob.value(wanted) is not None
    ]
    requested = _TURBO.value(wanted)
    if requested is not None:
        plans.append(_turbo(facts, wanted, requested))
    plan_of_all = joined(*plans)
    # At boot the governor comes first: no boot begins with a governor that fixes the preference to another word.
    lines = sorted(plan_of_all.at_boot.items(), key=lambda line: line[0] not in _GOVERNOR.at_boot)
    return plan_of_all._replace(at_boot=dict(lines))


def _in_order(power: PowerFacts) -> Tuple[Knob, Knob]:
    """Governor and preference in the order in which the kernel takes both of them.

    Under the governor performance intel_pstate takes no preference but
    performance, so the governor comes first where it leaves performance.
    """
    return (_GOVERNOR, _PREFERENCE) if FIXING in power.governors.values() else (_PREFERENCE, _GOVERNOR)


def _governor_obstacle(power: PowerFacts, wanted: Wanted, requested: str) -> str:
    """Why the governor that is planned doesn't allow the preference; empty where it does."""
    governors = set(power.governors.values())
    wanted_governor = _GOVERNOR.value(wanted)
    if wanted_governor in power.governors_offered:
        governors = {wanted_governor}
    if requested == FIXING or FIXING not in governors:
        return ""
    return (
        f"cpu_power.energy_performance_preference: under the governor {FIXING} the kernel takes no"
        f" preference but {FIXING}, so it can't take {plain(requested)}: set another governor too, or"
        " leave the preference out"
    )


def _table(power: PowerFacts, wanted: Wanted, knob: Knob, requested: str) -> Plan:
    """The plan for the governor, or the energy preference, of each frequency domain."""
    is_governor = knob is _GOVERNOR
    present = power.governors if is_governor else power.preferences
    if not present:
        missing = "cpufreq" if is_governor else "energy preference (intel_pstate or amd-pstate has one)"
        return knob.says("not_applicable", NO_FREQUENCIES.format(missing), None, requested)
    offered = power.governors_offered if is_governor else power.preferences_offered
    words = " ".join(sorted(set(present.values())))
    obstacle = "" if is_governor else _governor_obstacle(power, wanted, requested)
    if obstacle:
        return knob.impossible(wanted, obstacle, words, requested)
    if requested not in offered:
        return knob.not_offered(wanted, "host", requested, offered, words)
    return knob.change_each(wanted, present, dict.fromkeys(present, requested), "requested by name")


def _turbo(facts: Facts, wanted: Wanted, requested: str) -> Plan:
    now = facts.power.turbo
    if now is None:
        reason = NO_FREQUENCIES.format("switch for turbo (intel_pstate/no_turbo, cpufreq/boost)")
        return _TURBO.says("not_applicable", reason, None, requested)
    model = facts.cpu.model or "its processor"
    by_workload = _TURBO.wanted_by(wanted) == "workload"
    if requested == "disabled" and by_workload and not re.search(_BEFORE_ICE_LAKE, model, re.ASCII):
        reason = f"AVX slows {model} only a little, like all CPUs since Intel's Ice Lake: turbo stays as it is"
        return _TURBO.says("not_applicable", reason, now, now)
    goal = "enabled" if requested == "kernel" else requested
    reason = "the frequency stays the same, even while AVX code runs" if goal == "disabled" else "busy cores run faster"
    return _TURBO.change(wanted, now, goal, reason)
