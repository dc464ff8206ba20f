# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""cpu_power: idle states, chosen by the time it takes to wake up from them. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Dict, Mapping, Optional, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.power import IdleState, PowerFacts
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Finding, Plan, Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.boot_argument import plan_argument
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.gate import host_class
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.join import joined
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.knob import boot_argument

NAME = "cpu_power"

# processor.max_cstate is for acpi_idle, which AMD has; AWS calls both safe together (ec2.md 2.2).
# Never 0: that doesn't mean C0, it switches intel_idle off, and acpi_idle may sleep deeper then.
ARGUMENTS = {
    "c1": {"intel_idle.max_cstate": "intel_idle.max_cstate=1", "processor.max_cstate": "processor.max_cstate=1"},
    "poll": {"idle": "idle=poll"},
}
REFERENCE = "S0-15, S0-16"
GAIN = "waking up takes {0} µs instead of up to {1} (the kernel's table)"
PRICE = "busy cores lose turbo headroom: 3.44 → 3.20 GHz on c4.8xlarge (AWS)"


def plan(facts: Facts, wanted: Wanted) -> Plan:
    """The plan for `idle` or `max_exit_latency_us`, whichever was asked for."""
    knob = "idle" if wanted.get("idle") is not None else "max_exit_latency_us"
    asked = wanted.get(knob)
    if asked is None:
        return Plan()
    power = facts.power
    told = _advice(power)
    if power is None or power.idle_states is None or power.idle_disabled is None:
        reason = "this host has no cpuidle: its type leaves idle states to the hypervisor"
        return Plan(findings=(_finding(knob, "not_applicable", reason, None, asked), *told))
    limit = _limit(power.idle_states, asked)
    if _only_polls(power.idle_states, limit):
        stop = _poll_refused(facts, wanted, knob, power)
        if stop is not None:
            return Plan(findings=(stop, *told))
    method = wanted.get("method")
    at_boot = _at_boot(facts, str(asked), wanted) if method != "runtime" else Plan()
    if method == "boot":
        return Plan(at_boot.actions, (*at_boot.findings, *told))
    target = _target(power, power.idle_states, limit)
    reason = _reason(power.idle_states, limit, asked)
    shown, goal = _used(power.idle_states, power.idle_disabled), _used(power.idle_states, target)
    if dict(power.idle_disabled) == target:
        return Plan(at_boot.actions, (_finding(knob, "ok", reason, shown, goal), *at_boot.findings, *told))
    action = Action(
        concern=NAME,
        knob=knob,
        what="power.idle_disabled",
        before=dict(power.idle_disabled),
        after=target,
        wanted_by=wanted.wanted_by(knob),
        reason=reason,
        reference=REFERENCE,
    )
    finding = _finding(knob, "would_change", reason, shown, goal, _gain(power.idle_states, limit))
    return Plan((action, *at_boot.actions), (finding, *at_boot.findings, *told))


def _at_boot(facts: Facts, asked: str, wanted: Wanted) -> Plan:
    """Kernel arguments, under a knob of their own: a run with another method then takes them back."""
    plans = [
        plan_argument(
            facts,
            wanted,
            boot_argument(NAME, "method", name, REFERENCE, option="idle"),
            ARGUMENTS.get(asked, {}).get(name),
            "no CPU ever sleeps deeper, from the first moment of the boot on",
        )
        for name in _names(facts, asked)
    ]
    return joined(*plans)


def _names(facts: Facts, asked: str) -> Tuple[str, ...]:
    """The arguments to speak of: those that are wanted, and ours that another wish had put there."""
    wanted = tuple(ARGUMENTS.get(asked) or ARGUMENTS["c1"])
    ours = facts.boot.arguments if facts.boot is not None else {}
    return wanted + tuple(name for names in ARGUMENTS.values() for name in names if name in ours and name not in wanted)


def _limit(states: Tuple[IdleState, ...], asked: "str | int") -> Optional[int]:
    """The longest time to wake up that is allowed, in µs; None: no limit."""
    if asked == "kernel":
        return None
    if asked == "poll":
        return -1
    if asked == "c1":
        # C1 by what it is, the quickest state that halts: its name varies (C1, C1-HSW, C1_ACPI).
        halting = [state.latency for state in states if not state.polls]
        return min(halting) if halting else None
    return int(asked)


def _allowed(state: IdleState, limit: Optional[int]) -> bool:
    return state.polls or limit is None or state.latency <= limit


def _only_polls(states: Tuple[IdleState, ...], limit: Optional[int]) -> bool:
    return limit is not None and all(state.polls or not _allowed(state, limit) for state in states)


def _target(power: PowerFacts, states: Tuple[IdleState, ...], limit: Optional[int]) -> Dict[str, str]:
    """State → CPUs that leave it out; a state that the kernel itself leaves out stays out."""
    return {state.key: "" if state.default and _allowed(state, limit) else power.idle_cpus for state in states}


def _poll_refused(facts: Facts, wanted: Wanted, knob: str, power: PowerFacts) -> Optional[Finding]:
    asked = wanted.get(knob)
    floor = min((state.latency for state in power.idle_states or () if not state.polls), default=0)
    what = "" if asked == "poll" else f"{asked} µs is less than C1 needs ({floor} µs), so CPUs would only poll: "
    if host_class(facts, wanted) != "metal":
        reason = what + "polling takes the other thread's and the neighbours' share of the core; on metal only, use c1"
    elif not wanted.get("allow_poll"):
        reason = what + "polling burns full power, costs turbo and slows the other thread; allow_poll: true does it"
    else:
        return None
    return _finding(knob, "refused", reason, _used(power.idle_states or (), power.idle_disabled or {}), asked)


def _reason(states: Tuple[IdleState, ...], limit: Optional[int], asked: "str | int") -> str:
    if limit is None:
        return "the kernel uses every state that it would by itself"
    left = [state.name for state in states if _allowed(state, limit)]
    sentence = f"only {' and '.join(left)} are left" if asked != "poll" else "CPUs never idle"
    return sentence if all(_allowed(state, limit) for state in states) else f"{sentence}; {PRICE}"


def _gain(states: Tuple[IdleState, ...], limit: Optional[int]) -> str:
    if limit is None:
        return ""
    quick = max((state.latency for state in states if _allowed(state, limit)), default=0)
    return GAIN.format(quick, max(state.latency for state in states))


def _used(states: Tuple[IdleState, ...], disabled: Mapping[str, str]) -> str:
    """The names of the states that every CPU uses."""
    return " ".join(state.name for state in states if not disabled.get(state.key))


def _advice(power: Optional[PowerFacts]) -> Tuple[Finding, ...]:
    told = []
    arguments = power.idle_arguments if power is not None else ()
    if "intel_idle.max_cstate=0" in arguments:
        told.append(
            "intel_idle.max_cstate=0 is on the kernel command line: it doesn't mean C0, it switches intel_idle off, and"
            " acpi_idle may sleep deeper; use intel_idle.max_cstate=1"
        )
    if "idle=poll" in arguments:
        told.append("idle=poll is on the kernel command line: no CPU ever idles, turbo has no headroom; remove it")
    return tuple(Finding(NAME, "idle", "advice", sentence, reference=REFERENCE) for sentence in told)


def _finding(
    knob: str, status: str, reason: str, now: Optional[str], goal: "str | int | None", gain: str = ""
) -> Finding:
    return Finding(NAME, knob, status, reason, now=now, wanted=goal, reference=REFERENCE, gain=gain)
