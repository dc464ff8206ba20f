# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""cpu_power: how deep CPUs sleep, and how fast they run. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Tuple

from ..._error import NearmetalError
from ..._facts.facts import Facts
from ..._plan import Plan, Wanted
from ..._planning.gate import host_class
from ..._planning.join import joined
from ..._planning.knob import options_of
from ..._planning.native import tmpfiles
from ..._planning.options import CONSENT, METHOD, PERSIST
from ..._planning.skeleton import tuning
from . import frequency, idle, platform

NAME = "cpu_power"
KNOBS = (*idle.KNOBS, *frequency.KNOBS, *platform.KNOBS)
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    **options_of(KNOBS),
    "method": METHOD,
    "persist": PERSIST,
    "allow_poll": CONSENT,
}


def _require_one_depth(wanted: Wanted) -> None:
    """Raise NearmetalError for idle states that are limited twice, or by a latency that no kernel argument takes."""
    latency = wanted.get("max_exit_latency_us")
    if latency is not None and wanted.get("idle") is not None:
        raise NearmetalError("cpu_power: idle and max_exit_latency_us exclude each other; give one of them")
    if latency is not None and wanted.get("method") != "runtime":
        raise NearmetalError(
            "cpu_power.max_exit_latency_us: no kernel argument takes a latency; use method: runtime, or idle: c1"
        )


def _decide(facts: Facts, wanted: Wanted) -> Plan:
    """Idle states are chosen again at each boot: the same disk may start as a type that has others."""
    decision = _decided_by_type(facts, wanted)
    if decision is not None:
        status, reason = decision
        managed = [knob for knob in KNOBS if knob.spec is not None and knob.value(wanted) is not None]
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
    options=OPTIONS,
    knobs=KNOBS,
    domains=("platform", "cpu", "power", "boot", "unit", "files"),
    decide=_decide,
    require=_require_one_depth,
)
