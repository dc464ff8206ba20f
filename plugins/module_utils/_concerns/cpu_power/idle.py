# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""cpu_power: idle states, chosen by the time it takes to wake up from them. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, List, Mapping, Optional, Sequence, Tuple

from ..._facts.facts import Facts
from ..._facts.power import IdleState, PowerFacts
from ..._plan import Plan, Wanted, joined
from ..._planning.boot_argument import plan_argument
from ..._planning.gate import host_class
from ..._planning.knob import Knob, boot_argument

NAME = "cpu_power"

# processor.max_cstate is for acpi_idle, which AMD uses; AWS calls both safe together:
# docs/ec2.md#idle-states-and-frequency.
# Never 0: that doesn't mean C0, it switches intel_idle off, and acpi_idle may sleep deeper then.
ARGUMENTS = {
    "c1": {"intel_idle.max_cstate": "intel_idle.max_cstate=1", "processor.max_cstate": "processor.max_cstate=1"},
    "poll": {"idle": "idle=poll"},
}
REFERENCE = "AWS, 2017"
GAIN = "waking up takes {0} µs instead of up to {1} (the kernel's table)"
PRICE = "busy cores lose turbo headroom: 3.44 → 3.20 GHz on c4.8xlarge (AWS)"


_LEVER = "power.idle_disabled"
_MORE: Mapping[str, Any] = {"takes_effect": "at_once", "tuned": ("cpu.force_latency",)}
_IDLE = Knob(NAME, "idle", _LEVER, REFERENCE, {"type": "str", "choices": ["kernel", "c1", "poll"]}, **_MORE)
_LATENCY = Knob(NAME, "max_exit_latency_us", _LEVER, REFERENCE, {"type": "int", "range": (0, 1000000)}, **_MORE)
# A knob of their own, so that a run with another method takes them back.
_AT_BOOT = {
    name: boot_argument(NAME, "method", name, REFERENCE, option="idle")
    for names in ARGUMENTS.values()
    for name in names
}
KNOBS = (_IDLE, _LATENCY, *_AT_BOOT.values())


def plan(facts: Facts, wanted: Wanted) -> Plan:
    """The plan for `idle` or `max_exit_latency_us`, whichever is wanted."""
    knob = _IDLE if _IDLE.value(wanted) is not None else _LATENCY
    requested, power, method = knob.value(wanted), facts.power, wanted.get("method")
    if requested is None:
        return Plan()
    advice = _advice(power)
    if not power.idle_states:
        reason = "this host has no cpuidle: its type leaves idle states to the hypervisor"
        return joined(knob.says("not_applicable", reason, None, requested), advice)
    allowed = _allowed(power.idle_states, requested)
    only_polls = allowed is not None and all(state.polls for state in allowed)
    refusal = _poll_refusal(facts, wanted, knob, power) if only_polls else None
    if refusal is not None:
        return joined(refusal, advice)
    runtime = _runtime(wanted, knob, power, allowed) if method != "boot" else Plan()
    at_boot = _at_boot(facts, str(requested), wanted) if method != "runtime" else Plan()
    return joined(runtime, at_boot, advice)


def _runtime(wanted: Wanted, knob: Knob, power: PowerFacts, allowed: Optional[Sequence[IdleState]]) -> Plan:
    states, present = power.idle_states, dict(power.idle_disabled)
    # A state that the kernel itself leaves out stays out.
    used = [state for state in states if state.default and (allowed is None or state in allowed)]
    target = {state.key: "" if state in used else power.idle_cpus for state in states}
    reason = _reason(states, allowed, knob.value(wanted))
    in_use, goal = _states_in_use(states, present), _states_in_use(states, target)
    if present == target:
        return knob.says("ok", reason, in_use, goal)
    finding = knob.finding("would_change", reason, in_use, goal, _gain(states, allowed))
    return Plan((knob.action(knob.wanted_by(wanted), present, target, reason),), (finding,))


def _at_boot(facts: Facts, requested: str, wanted: Wanted) -> Plan:
    reason = "this also holds while the host boots, from the kernel's first moment on"
    texts = ARGUMENTS.get(requested, {})
    names = _names(facts, requested)
    return joined(*(plan_argument(facts, wanted, _AT_BOOT[name], texts.get(name), reason) for name in names))


def _names(facts: Facts, requested: str) -> Tuple[str, ...]:
    """The arguments to report: those that are wanted, and those that an earlier run set."""
    wanted = tuple(ARGUMENTS.get(requested) or ARGUMENTS["c1"])
    recorded = facts.boot.arguments
    return wanted + tuple(
        name for names in ARGUMENTS.values() for name in names if name in recorded and name not in wanted
    )


def _allowed(states: Tuple[IdleState, ...], requested: "str | int") -> Optional[List[IdleState]]:
    """The states that poll, and those from which a CPU wakes up soon enough; None: all that the kernel uses."""
    limit = -1 if requested == "poll" else requested
    if requested == "c1":
        # C1 is the quickest state that halts; its name varies (C1, C1-HSW, C1_ACPI).
        limit = min((state.latency for state in states if not state.polls), default="kernel")
    return None if limit == "kernel" else [state for state in states if state.polls or state.latency <= int(limit)]


def _poll_refusal(facts: Facts, wanted: Wanted, knob: Knob, power: PowerFacts) -> Optional[Plan]:
    requested = knob.value(wanted)
    floor = min((state.latency for state in power.idle_states if not state.polls), default=0)
    cause = (
        "" if requested == "poll" else f"{requested} µs is less than C1 needs ({floor} µs), so CPUs would only poll: "
    )
    if host_class(facts, wanted) != "metal":
        reason = (
            cause + "polling takes the other thread's and the neighbors' share of the core; use c1, or poll on metal"
        )
    elif not wanted.get("allow_poll"):
        reason = cause + "polling burns full power, costs turbo and slows the other thread; allow_poll: true allows it"
    else:
        return None
    return knob.says("refused", reason, _states_in_use(power.idle_states, power.idle_disabled), requested)


def _reason(states: Sequence[IdleState], allowed: Optional[Sequence[IdleState]], requested: "str | int") -> str:
    if allowed is None:
        return "the kernel uses all the idle states that it would choose by itself"
    names = [state.name for state in allowed]
    named = " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)
    sentence = f"CPUs use only {named}" if requested != "poll" else "CPUs never idle"
    return sentence if len(allowed) == len(states) else f"{sentence}; {PRICE}"


def _gain(states: Sequence[IdleState], allowed: Optional[Sequence[IdleState]]) -> str:
    if allowed is None:
        return ""
    quick = max((state.latency for state in allowed), default=0)
    return GAIN.format(quick, max(state.latency for state in states))


def _states_in_use(states: Tuple[IdleState, ...], disabled: Mapping[str, str]) -> str:
    """The names of the states that every CPU uses."""
    return " ".join(state.name for state in states if not disabled.get(state.key))


def _advice(power: PowerFacts) -> Plan:
    sentences = []
    if "intel_idle.max_cstate=0" in power.idle_arguments:
        sentences.append(
            "intel_idle.max_cstate=0 is on the kernel command line: it doesn't mean C0 but switches"
            " intel_idle off, and acpi_idle may sleep deeper; use intel_idle.max_cstate=1"
        )
    if "idle=poll" in power.idle_arguments:
        sentences.append(
            "idle=poll is on the kernel command line: no CPU ever idles, so turbo has no headroom; remove it"
        )
    return _IDLE.advises(sentences)
