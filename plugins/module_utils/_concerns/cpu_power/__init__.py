# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""cpu_power: how deep CPUs sleep, how fast they run, and what interrupts them. Pure. PRIVATE to the collection."""

from __future__ import annotations

from functools import partial
from typing import Optional, Tuple

from ..._error import NearmetalError
from ..._facts.facts import Facts
from ..._parameters import CPU_POWER
from ..._plan import Plan, Wanted, joined
from ..._planning.boot_argument import plan_argument
from ..._planning.gate import host_class
from ..._planning.knob import boot_argument
from ..._planning.native import sysctl_d, tmpfiles
from ..._planning.options import CONSENT, METHOD, PERSIST
from ..._planning.parameters import knobs_of, plan_parameters
from ..._planning.skeleton import per_knob, tuning
from . import frequency, idle, platform

NAME = "cpu_power"
_PARAMETERS = knobs_of(NAME, CPU_POWER)
_SKEW = boot_argument(
    NAME,
    "skew_tick",
    "skew_tick",
    "tuned, network-latency; Linux kernel, kernel-parameters",
    spec={"type": "str", "choices": ["enabled", "kernel"]},
)
_OF_POWER = (*idle.KNOBS, *frequency.KNOBS, *platform.KNOBS)
KNOBS = (*_OF_POWER, *_PARAMETERS, _SKEW)


def _require_one_depth(wanted: Wanted) -> None:
    """Raise NearmetalError for idle states that are limited twice, or by a latency that no kernel argument takes."""
    latency = wanted.get("max_exit_latency_us")
    if latency is not None and wanted.get("idle") is not None:
        raise NearmetalError("cpu_power: idle and max_exit_latency_us exclude each other; give one of them")
    if latency is not None and wanted.get("method") != "runtime":
        raise NearmetalError(
            "cpu_power.max_exit_latency_us: no kernel argument takes a latency; use method: runtime, or idle: c1"
        )


def _skew(facts: Facts, wanted: Wanted, requested: str) -> Plan:
    """The plan for ticks of the CPUs at different moments."""
    reason = "the ticks of all CPUs at one moment would make them wait for the same locks"
    return plan_argument(facts, wanted, _SKEW, "skew_tick=1" if requested == "enabled" else None, reason)


def _power(facts: Facts, wanted: Wanted) -> Plan:
    """Idle states are chosen again at each boot: the same disk may start as a type that has others."""
    decision = _decided_by_type(facts, wanted)
    if decision is not None:
        status, reason = decision
        managed = [knob for knob in _OF_POWER if knob.spec is not None and knob.value(wanted) is not None]
        return joined(*(knob.says(status, reason, None, knob.value(wanted)) for knob in managed))
    idle_plan = idle.plan(facts, wanted)
    chosen = wanted.get("idle") in ("c1", "poll") or wanted.get("max_exit_latency_us") is not None
    refused = any(finding.status == "refused" for finding in idle_plan.findings)
    replan = Plan(replan=chosen and not refused and wanted.get("method") == "runtime")
    return joined(idle_plan, frequency.plan(facts, wanted), platform.plan(facts, wanted), replan)


def _decided_by_type(facts: Facts, wanted: Wanted) -> Optional[Tuple[str, str]]:
    """Status and reason on a host class that can't control the power of its CPUs; None elsewhere."""
    if facts.burstable:
        return "refused", "a burstable type shares its cores: the hypervisor alone controls their power"
    if facts.is_arm:
        return "not_applicable", "Graviton has one frequency and shows no C-states (Graviton guide)"
    if host_class(facts, wanted) == "xen_pv":
        return "not_applicable", "a Xen PV guest idles by a hypercall: the hypervisor controls the CPUs' power"
    return None


CONCERN = tuning(
    NAME,
    tmpfiles,
    sysctl_d,
    knobs=KNOBS,
    manner={"method": METHOD, "persist": PERSIST, "allow_poll": CONSENT},
    domains=("platform", "cpu", "power", "sysctl", "boot", "unit", "files"),
    decide=[_power, partial(plan_parameters, knobs=_PARAMETERS), per_knob((_SKEW, _skew))],
    require=_require_one_depth,
)
