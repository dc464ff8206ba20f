# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel parameters as options: what a value means in /proc/sys, and its plan. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Mapping, Optional, Tuple

from .._error import NearmetalError
from .._facts.facts import Facts
from .._number import is_number
from .._parameters import Parameter
from .._plan import Plan, Wanted, joined
from .._words import shown
from .bounds import widen
from .knob import Knob

# Status and reason of a parameter that isn't to be set.
Obstacle = Optional[Tuple[str, str]]
HELD = "held"  # the status of what is refused because of what the host does at this moment


def knobs_of(concern: str, parameters: Iterable[Parameter], **more: Mapping[str, Any]) -> Tuple[Knob, ...]:
    """The knobs of these parameters; `more`: option → what else its knob has."""
    return tuple(
        Knob(
            concern,
            parameter.option,
            "sysctl",
            parameter.reference,
            parameter.spec,
            place=parameter.key,
            reason=parameter.reason,
            bound=parameter.bound,
            takes_effect=parameter.takes_effect,
            by_unit=parameter.by_unit,
            **more.get(parameter.option, {}),
        )
        for parameter in parameters
    )


def plan_parameters(
    facts: Facts,
    wanted: Wanted,
    knobs: Iterable[Knob],
    obstacle: Callable[[Facts, Wanted, Knob, str], Obstacle] = lambda _facts, _wanted, _knob, _value: None,
) -> Plan:
    """The plan for the kernel parameters. No file sets at boot what the untuned host has: the unit plans that again.

    Raises NearmetalError for a value that no kernel takes.
    """
    plans = []
    for knob in knobs:
        if knob.value(wanted) is None:
            continue
        now, value = facts.sysctl.get(knob.place), value_of(knob, knob.value(wanted))
        outcome = obstacle(facts, wanted, knob, value)
        if now is None:
            outcome = "not_applicable", f"this kernel has no {knob.place}"
        if outcome is not None and outcome[0] != HELD:
            plans.append(knob.says(*outcome, now, value))
            continue
        goal, reason = widen(knob, wanted, value, str(facts.host_value("sysctl", knob.place, now)), knob.reason)
        change = knob.change(wanted, now, goal, reason)
        change = change if goal == value else change._replace(replan=True, at_boot={})
        plans.append(knob.gated(wanted, outcome[1] if outcome is not None else "", change))
    return joined(*plans)


def value_of(knob: Knob, requested: Any) -> str:
    """The option as the kernel writes it. Raises NearmetalError for a value that no kernel takes."""
    spec, option = knob.spec or {}, f"{knob.concern}.{knob.name}"
    if "choices" in spec:
        return str(spec["choices"].index(requested))
    words = str(requested).split()
    if spec.get("ports"):
        from .._facts.listening import listed, shown_ports  # few runs have ports

        try:
            return shown_ports(listed(str(requested)))
        except NearmetalError:
            raise NearmetalError(
                f"{option} must be auto, or ports such as 8080,30000-32767, not {shown(requested)}"
            ) from None
    if "range" not in spec:
        if len(words) != 1 or not words[0].replace("_", "").isalnum() or not words[0].isascii():
            raise NearmetalError(f"{option} must be a name of letters, digits and _, not {shown(requested)}")
        return words[0]
    numbers = [int(word) for word in words if is_number(word)]
    count, (least, most) = spec.get("numbers", 1), spec["range"]
    fits = all(least <= number <= most for number in numbers)
    if len(numbers) != len(words) or len(numbers) != count or not fits or numbers != sorted(numbers):
        wanted = "a number" if count == 1 else f"{count} ascending numbers"
        raise NearmetalError(f"{option} must be {wanted} from {least} to {most}, not {shown(requested)}")
    step = spec.get("step", 1)
    return " ".join(str(-(-number // step) * step) for number in numbers)
