# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""cpu_power: turbo, governor and energy preference. Pure. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Dict, Mapping, Optional, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.power import BOOST, CPUFREQ, NO_TURBO, PowerFacts
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Plan, Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.join import joined
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.knob import Knob
from ansible_collections.nearmetal.ec2.plugins.module_utils._words import plain

NAME = "cpu_power"
# Xeons of the E5 and E7 lines, then Skylake (x1xx) and Cascade Lake (x2xx) of the scalable line.
_BEFORE_ICE_LAKE = re.compile(r"\bE[57]-|\b(?:Platinum|Gold) [5-9][12][0-9]{2}", re.ASCII)
_FIXING = "performance"  # the governor under which intel_pstate and amd-pstate fix the preference, to the same word
NO_FREQUENCIES = "this host has no {0}: its type runs at the frequency that the hypervisor gives it"


REFERENCE = "AWS, 2017"
_TURBO = Knob(
    NAME,
    "turbo",
    "power.turbo",
    REFERENCE,
    {"type": "str", "choices": ["kernel", "enabled", "disabled"]},
    tuned=("cpu.no_turbo", "cpu.boost"),
    tuned_words={
        "cpu.no_turbo": {"1": "disabled", "true": "disabled", "0": "enabled", "false": "enabled"},
        "cpu.boost": {"1": "enabled", "true": "enabled", "0": "disabled", "false": "disabled"},
    },
    comparable=True,
)
_GOVERNOR = Knob(
    NAME, "governor", "power.governors", REFERENCE, {"type": "str"}, tuned=("cpu.governor",), comparable=True
)
_PREFERENCE = Knob(
    NAME,
    "energy_performance_preference",
    "power.preferences",
    REFERENCE,
    {"type": "str"},
    tuned=("cpu.energy_performance_preference", "cpu.energy_perf_bias"),
    comparable=True,
)
KNOBS = (_TURBO, _GOVERNOR, _PREFERENCE)
_FILES = {
    _GOVERNOR.name: f"{CPUFREQ}/policy*/scaling_governor",
    _PREFERENCE.name: f"{CPUFREQ}/policy*/energy_performance_preference",
}


def plan(facts: Facts, wanted: Wanted) -> Tuple[Plan, Dict[str, str]]:
    """The plan for what is wanted of frequencies, and what makes it last: kernel path → value.

    Raises NearmetalError when a word is forced that the host doesn't offer.
    """
    plans, lasting = [], {}
    for knob in _in_order(facts.power):
        requested = knob.value(wanted)
        if requested is not None:
            plans.append(_table(facts.power, wanted, knob, requested))
            if _holds(plans[-1]):
                lasting[_FILES[knob.name]] = requested
    requested = _TURBO.value(wanted)
    if requested is not None:
        plans.append(_turbo(facts, wanted, requested))
        if _holds(plans[-1]) and requested != "kernel":
            off = requested == "disabled"
            # Both: of two drivers each has its own file, and a missing one is passed over.
            lasting.update({NO_TURBO: "1" if off else "0", BOOST: "0" if off else "1"})
    # At boot the governor comes first: no boot begins with one that fixes the preference to another word.
    return joined(*plans), dict(sorted(lasting.items(), key=lambda line: line[0] != _FILES[_GOVERNOR.name]))


def _holds(plan_of_knob: Plan) -> bool:
    return plan_of_knob.findings[0].status in ("ok", "would_change")


def _in_order(power: Optional[PowerFacts]) -> Tuple[Knob, Knob]:
    """Governor and preference in the order in which the kernel takes both.

    Under the governor performance intel_pstate takes no other preference than
    performance, so what leaves that governor comes first.
    """
    governors = (power.governors if power is not None else None) or {}
    return (_GOVERNOR, _PREFERENCE) if _FIXING in governors.values() else (_PREFERENCE, _GOVERNOR)


def _fixed(power: PowerFacts, wanted: Wanted, requested: str) -> str:
    """Why the governor, as it will be, doesn't take the preference; empty where it takes it."""
    governors = set((power.governors or {}).values())
    coming = _GOVERNOR.value(wanted)
    if coming in power.governors_offered:
        governors = {coming}
    if requested == _FIXING or _FIXING not in governors:
        return ""
    return (
        f"cpu_power.energy_performance_preference: under the governor {_FIXING} the kernel takes no other preference"
        f" than {_FIXING}, so not {plain(requested)}: set another governor too, or leave the preference out"
    )


def _table(power: Optional[PowerFacts], wanted: Wanted, knob: Knob, requested: str) -> Plan:
    """The plan for the word that each frequency domain has of the governor, or of the preference."""
    is_governor = knob is _GOVERNOR
    present = None if power is None else power.governors if is_governor else power.preferences
    if power is None or present is None:
        thing = "cpufreq" if is_governor else "energy preference (intel_pstate or amd-pstate has one)"
        return knob.says("not_applicable", NO_FREQUENCIES.format(thing), None, requested)
    offered = power.governors_offered if is_governor else power.preferences_offered
    sentence = "" if is_governor or not present else _fixed(power, wanted, requested)
    if not sentence and requested not in offered:
        sentence = (
            f"cpu_power.{knob.name}: this host doesn't offer {plain(requested)};"
            f" it offers {' '.join(offered) or 'nothing'}"
        )
    if sentence:
        return Plan(findings=(knob.impossible(wanted, sentence, _words(present), requested),))
    after = dict.fromkeys(present, requested)
    reason = "asked for by name"
    if dict(present) == after:
        return knob.says("ok", reason, _words(present), requested)
    before = {domain: word for domain, word in present.items() if word}
    finding = knob.finding("would_change", reason, _words(before), requested)
    return Plan((knob.action(knob.wanted_by(wanted), before, after, reason),), (finding,))


def _turbo(facts: Facts, wanted: Wanted, requested: str) -> Plan:
    now = facts.power.turbo if facts.power is not None else None
    if now is None:
        reason = NO_FREQUENCIES.format("switch for turbo (intel_pstate/no_turbo, cpufreq/boost)")
        return _TURBO.says("not_applicable", reason, None, requested)
    model = (facts.cpu.model if facts.cpu is not None else None) or "its processor"
    by_workload = _TURBO.wanted_by(wanted) == "workload"
    if requested == "disabled" and by_workload and not _BEFORE_ICE_LAKE.search(model):
        reason = f"AVX slows {model} little, like all CPUs since Intel's Ice Lake: turbo stays"
        return _TURBO.says("not_applicable", reason, now, now)
    goal = "enabled" if requested == "kernel" else requested
    reason = "the frequency stays the same, even beside AVX" if goal == "disabled" else "busy cores run faster"
    return _TURBO.change(wanted, now, goal, reason)


def _words(present: Mapping[str, str]) -> str:
    return " ".join(sorted(set(present.values())))
