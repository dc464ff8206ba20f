# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""cpu_power: turbo, governor and energy preference. Pure. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Dict, List, Mapping, Optional, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.power import BOOST, CPUFREQ, NO_TURBO, PowerFacts
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Finding, Plan, Value, Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.join import joined
from ansible_collections.nearmetal.ec2.plugins.module_utils._words import plain

NAME = "cpu_power"
# Xeons of the E5 and E7 lines, then Skylake (x1xx) and Cascade Lake (x2xx) of the scalable line.
_BEFORE_ICE_LAKE = re.compile(r"\bE[57]-|\b(?:Platinum|Gold) [5-9][12][0-9]{2}", re.ASCII)
_FIXING = "performance"  # the governor under which intel_pstate and amd-pstate fix the preference, to the same word
NO_FREQUENCIES = "this host has no {0}: its type runs at the frequency that the hypervisor gives it"


def plan(facts: Facts, wanted: Wanted) -> Tuple[Plan, Dict[str, str]]:
    """The plan for what was asked of frequencies, and what makes it last: kernel path → value.

    Raises NearmetalError when a word is forced that the host doesn't offer.
    """
    power = facts.power
    plans: List[Plan] = []
    persisted: Dict[str, str] = {}
    for knob, present, words, path in _tables(power):
        asked = wanted.get(knob)
        if asked is None:
            continue
        one = _fixed(power, wanted, asked) if knob == "energy_performance_preference" else Plan()
        if not one.findings:
            one = _table(wanted, knob, asked, present, words)
        if one.findings[0].status in ("ok", "would_change"):
            persisted[path] = asked
        plans.append(one)
    asked = wanted.get("turbo")
    if asked is not None:
        one = _turbo(facts, wanted, asked)
        if one.findings[0].status in ("ok", "would_change") and asked != "kernel":
            off = asked == "disabled"
            # Both: of two drivers each has its own file, and a missing one is passed over.
            persisted.update({NO_TURBO: "1" if off else "0", BOOST: "0" if off else "1"})
        plans.append(one)
    # At boot the governor comes first: no boot begins with one that fixes the preference to another word.
    return joined(*plans), dict(sorted(persisted.items(), key=lambda line: not line[0].endswith("/scaling_governor")))


_Table = Tuple[str, Optional[Mapping[str, str]], Tuple[str, ...], str]


def _tables(power: Optional[PowerFacts]) -> Tuple[_Table, ...]:
    """Governor and preference in the order in which the kernel takes both.

    Under the governor performance intel_pstate takes no other preference than
    performance, so what leaves that governor comes first.
    """
    governors = power.governors if power is not None else None
    preferences = power.preferences if power is not None else None
    governor: _Table = (
        "governor",
        governors,
        power.governors_offered if power is not None else (),
        f"{CPUFREQ}/policy*/scaling_governor",
    )
    preference: _Table = (
        "energy_performance_preference",
        preferences,
        power.preferences_offered if power is not None else (),
        f"{CPUFREQ}/policy*/energy_performance_preference",
    )
    if "performance" in (governors or {}).values():
        return (governor, preference)
    return (preference, governor)


def _fixed(power: Optional[PowerFacts], wanted: Wanted, asked: str) -> Plan:
    """What to say of a preference that the governor, as it will be, doesn't take; nothing where it takes it."""
    present = power.preferences if power is not None else None
    governors = set((power.governors or {}).values()) if power is not None else set()
    coming = wanted.get("governor")
    if power is not None and coming in power.governors_offered:
        governors = {coming}
    if not present or asked == _FIXING or _FIXING not in governors:
        return Plan()
    sentence = (
        f"cpu_power.energy_performance_preference: under the governor {_FIXING} the kernel takes no other preference"
        f" than {_FIXING}, so not {plain(asked)}: set another governor too, or leave the preference out"
    )
    if wanted.wanted_by("energy_performance_preference") == "workload":
        knob = "energy_performance_preference"
        return Plan(findings=(_finding(knob, "not_applicable", sentence, _words(present), asked),))
    raise NearmetalError(sentence)


def _table(
    wanted: Wanted, knob: str, asked: str, present: Optional[Mapping[str, str]], offered: Tuple[str, ...]
) -> Plan:
    if present is None:
        thing = "cpufreq" if knob == "governor" else "energy preference (intel_pstate or amd-pstate has one)"
        return Plan(findings=(_finding(knob, "not_applicable", NO_FREQUENCIES.format(thing), None, asked),))
    if asked not in offered:
        sentence = (
            f"cpu_power.{knob}: this host doesn't offer {plain(asked)}; it offers {' '.join(offered) or 'nothing'}"
        )
        if wanted.wanted_by(knob) == "workload":
            return Plan(findings=(_finding(knob, "not_applicable", sentence, _words(present), asked),))
        raise NearmetalError(sentence)
    after = dict.fromkeys(present, asked)
    reason = "asked for by name"
    if dict(present) == after:
        return Plan(findings=(_finding(knob, "ok", reason, _words(present), asked),))
    what = "power.governors" if knob == "governor" else "power.preferences"
    before = {domain: word for domain, word in present.items() if word}
    return _change(wanted, knob, what, before, after, reason, _words(before), asked)


def _turbo(facts: Facts, wanted: Wanted, asked: str) -> Plan:
    now = facts.power.turbo if facts.power is not None else None
    if now is None:
        reason = NO_FREQUENCIES.format("switch for turbo (intel_pstate/no_turbo, cpufreq/boost)")
        return Plan(findings=(_finding("turbo", "not_applicable", reason, None, asked),))
    model = (facts.cpu.model if facts.cpu is not None else None) or "its processor"
    if asked == "disabled" and wanted.wanted_by("turbo") == "workload" and not _BEFORE_ICE_LAKE.search(model):
        reason = f"AVX costs {model} little of its clock, as all since Intel's Ice Lake: turbo stays"
        return Plan(findings=(_finding("turbo", "not_applicable", reason, now, now),))
    goal = "enabled" if asked == "kernel" else asked
    reason = "clocks stay the same whoever runs AVX beside you" if goal == "disabled" else "busy cores clock up"
    if now == goal:
        return Plan(findings=(_finding("turbo", "ok", reason, now, goal),))
    return _change(wanted, "turbo", "power.turbo", now, goal, reason, now, goal)


def _change(
    wanted: Wanted, knob: str, what: str, before: Value, after: Value, reason: str, shown: str, goal: str
) -> Plan:
    action = Action(
        concern=NAME,
        knob=knob,
        what=what,
        before=before,
        after=after,
        wanted_by=wanted.wanted_by(knob),
        reason=reason,
        reference="S0-15, S0-17",
    )
    return Plan((action,), (_finding(knob, "would_change", reason, shown, goal),))


def _words(present: Mapping[str, str]) -> str:
    return " ".join(sorted(set(present.values())))


def _finding(knob: str, status: str, reason: str, now: Optional[str], goal: str) -> Finding:
    return Finding(NAME, knob, status, reason, now=now, wanted=goal, reference="S0-15, S0-17")
