# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""cpu_power: what processors and firmware of metal let choose beside frequencies. Pure. PRIVATE to the collection."""

from __future__ import annotations

from ..._facts.facts import Facts
from ..._facts.sys_files import PROFILE
from ..._facts.topology import CPU
from ..._plan import Plan, Wanted
from ..._planning.knob import Knob
from ..._planning.skeleton import per_knob

NAME = "cpu_power"
_BIAS = Knob(
    NAME,
    "energy_perf_bias",
    "power.biases",
    "Linux kernel, intel_epb; unmeasured",
    {"type": "int", "range": (0, 15)},
    takes_effect="at_once",
    at_boot={f"{CPU}/cpu*/power/energy_perf_bias": {}},
    tuned=("cpu.energy_perf_bias",),
)
_UNCORE = Knob(
    NAME,
    "uncore_frequency",
    "power.uncore",
    "Linux kernel, intel_uncore_frequency_scaling; unmeasured",
    {"type": "str", "choices": ["kernel", "max"]},
    takes_effect="at_once",
    by_unit=("max",),
)
_PROFILE = Knob(
    NAME,
    "platform_profile",
    "power.profile",
    "Linux kernel, sysfs-platform_profile; unmeasured",
    {"type": "str"},
    takes_effect="at_once",
    at_boot=PROFILE.at_boot,
)
KNOBS = (_BIAS, _UNCORE, _PROFILE)


def _bias(facts: Facts, wanted: Wanted, number: int) -> Plan:
    present, requested = facts.power.biases, str(number)
    if not present:
        reason = "this host has no energy_perf_bias: Intel's processors have it, and hypervisors show it to no guest"
        return _BIAS.says("not_applicable", reason, None, requested)
    reason = "0 prefers speed, 15 prefers saving power"
    return _BIAS.change_each(wanted, present, dict.fromkeys(present, requested), reason)


def _uncore(facts: Facts, wanted: Wanted, requested: str) -> Plan:
    power = facts.power
    if not power.uncore:
        reason = (
            "this host has no intel_uncore_frequency: the module of that name knows Intel's server processors, on metal"
        )
        return _UNCORE.says("not_applicable", reason, None, requested)
    reason = (
        "the last-level cache and the memory controllers never slow down, which takes power from the cores' turbo"
        if requested == "max"
        else "the last-level cache and the memory controllers slow down while they have little to do"
    )
    place = 1 if requested == "max" else 0
    goal = {name: power.uncore_limits[name][place] or word for name, word in power.uncore.items()}
    return _UNCORE.change_each(wanted, power.uncore, goal, reason)


def _profile(facts: Facts, wanted: Wanted, requested: str) -> Plan:
    """Raises NearmetalError for a profile that the user wants and the firmware doesn't offer."""
    now = facts.power.profile
    if now is None:
        reason = "this host's firmware has no platform_profile"
        return _PROFILE.says("not_applicable", reason, None, requested)
    offered = facts.power.profiles_offered
    if requested not in offered:
        return _PROFILE.not_offered(wanted, "firmware", requested, offered, now)
    return _PROFILE.change(wanted, now, requested, "how the firmware weighs speed, heat and noise; requested by name")


plan = per_knob((_UNCORE, _uncore), (_BIAS, _bias), (_PROFILE, _profile))
