# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""cpu_power: how deep CPUs sleep, and how fast they run. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Dict, Mapping

from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.cpu_power import frequency, idle
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Finding, Plan, Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.concern import Concern
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.gate import closed, host_class
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.join import joined
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.native import by_unit, plan_file, tmpfiles

NAME = "cpu_power"
KNOBS = ("idle", "max_exit_latency_us", "turbo", "governor", "energy_performance_preference")

OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "idle": {"type": "str", "choices": ["kernel", "c1", "poll"]},
    "max_exit_latency_us": {"type": "int", "range": (0, 1000000)},
    "turbo": {"type": "str", "choices": ["kernel", "enabled", "disabled"]},
    "governor": {"type": "str"},
    "energy_performance_preference": {"type": "str"},
    "method": {"type": "str", "choices": ["runtime", "boot", "both"], "default": "runtime"},
    "persist": {"type": "bool", "default": True},
    "allow_poll": {"type": "bool", "default": False},
}


def plan(facts: Facts, wanted: Wanted) -> Plan:
    """The plan for idle states, turbo, governor and energy preference.

    Raises NearmetalError when a value is forced that the host can't take.
    """
    latency = wanted.get("max_exit_latency_us")
    if latency is not None and wanted.get("idle") is not None:
        raise NearmetalError("cpu_power: idle and max_exit_latency_us say the same thing in two ways; give one of them")
    if latency is not None and wanted.get("method") != "runtime":
        raise NearmetalError(
            "cpu_power.max_exit_latency_us: no kernel argument says a latency; use method: runtime, or idle: c1"
        )
    asked = [knob for knob in KNOBS if wanted.get(knob) is not None]
    persisted: Dict[str, str] = {}
    shut = [
        finding for knob in asked for finding in closed(NAME, knob, facts, wanted) or _elsewhere(knob, facts, wanted)
    ]
    idling = clocked = lasting = Plan()
    if asked and not shut:
        idling = idle.plan(facts, wanted)
        clocked, persisted = frequency.plan(facts, wanted)
        if all(finding.status != "refused" for finding in idling.findings):
            lasting = _lasting(facts, wanted)
    path, text = tmpfiles(NAME, persisted)
    files = plan_file(NAME, facts, path, text if persisted and wanted.get("persist") else None, _by(wanted, asked))
    return joined(Plan(findings=tuple(shut)), idling, clocked, files, lasting)


def _lasting(facts: Facts, wanted: Wanted) -> Plan:
    """Idle states are chosen anew at each boot: the same disk may start as a type that has others."""
    chosen = wanted.get("idle") in ("c1", "poll") or wanted.get("max_exit_latency_us") is not None
    return by_unit(NAME, facts) if chosen and wanted.get("persist") and wanted.get("method") == "runtime" else Plan()


def _elsewhere(knob: str, facts: Facts, wanted: Wanted) -> "tuple[Finding, ...]":
    """The finding for a host class that has no say over its CPUs' power."""
    platform = facts.platform
    if platform is not None and platform.burstable:
        status, reason = "refused", "a burstable type shares its core: its host alone decides over power"
    elif platform is not None and platform.architecture == "aarch64":
        status, reason = "not_applicable", "Graviton has one frequency and shows no C-states (docs/ec2.md 2.2)"
    elif host_class(facts, wanted) == "xen_pv":
        status, reason = "not_applicable", "a Xen PV guest idles by a hypercall: the hypervisor decides over power"
    else:
        return ()
    return (Finding(NAME, knob, status, reason, wanted=wanted.get(knob), reference="S0-15"),)


def _by(wanted: Wanted, asked: "list[str]") -> str:
    return "user" if any(wanted.wanted_by(knob) == "user" for knob in asked) or not asked else "workload"


CONCERN = Concern(name=NAME, options=OPTIONS, domains=("platform", "cpu", "power", "boot", "unit", "files"), plan=plan)
