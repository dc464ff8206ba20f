# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a concern asks for a kernel argument. Pure. PRIVATE to the collection.

An argument costs a reboot, on the way in and on the way out. So the concern says
in `reason` why nothing at run time does the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.boot import BootFacts
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Finding, Plan


@dataclass(frozen=True)
class Argument:
    """A kernel argument that a knob asks for; `text` None: ours is to go, the kernel's own choice is wanted."""

    concern: str
    knob: str
    name: str  # tsc, hugepages
    text: "str | None"  # tsc=reliable; several tokens when their order matters: hugepagesz=1G hugepages=4
    reason: str
    reference: str
    wanted_by: str = "user"


def plan_argument(facts: Facts, argument: Argument) -> Plan:
    """Make the next boot bring the argument, and say whether the running kernel already has it.

    Whoever set an argument that is already there as wanted, there is nothing to do.
    Others' arguments are never taken away: they are reported.
    """
    boot = facts.boot
    now = boot.arguments.get(argument.name) if boot is not None else None
    told = Finding(
        concern=argument.concern,
        knob=argument.knob,
        status="ok",
        where=argument.name,
        reason=argument.reason,
        now=now,
        wanted=argument.text,
        reference=argument.reference,
    )
    if boot is None or boot.running is None:
        return Plan(findings=(replace(told, status="unknown", reason="the kernel's command line can't be read"),))
    if argument.text is None:
        return _give_back(boot, argument, told)
    if now == argument.text or (now is None and boot.coming(argument.text)):
        return Plan(findings=_after_reboot(boot, told, argument.text) or (told,))
    if boot.provider is None:
        if boot.booted(argument.text):
            return Plan(findings=(replace(told, now=argument.text),))
        reason = f"nearmetal doesn't write this boot loader's files; {boot.by_hand(argument.text)}"
        return Plan(findings=(replace(told, status="refused", reason=reason),))
    return Plan(
        (_action(argument, told),), (replace(told, status="would_change"), *_after_reboot(boot, told, argument.text))
    )


def _give_back(boot: BootFacts, argument: Argument, told: Finding) -> Plan:
    there = boot.now(argument.name)
    if told.now is None:
        findings = [told]
        if boot.named(argument.name):
            reason = f"{argument.name} is among the kernel arguments and nearmetal didn't put it there: left alone"
            findings.append(replace(told, status="advice", reason=reason))
        elif there:
            findings = [_needs_reboot(told, f"the next boot is without {there}")]
        return Plan(findings=tuple(findings))
    pending = (_needs_reboot(told, f"the running kernel still has {there}"),) if there else ()
    return Plan((_action(argument, told),), (replace(told, status="would_change"), *pending))


def _after_reboot(boot: BootFacts, told: Finding, text: str) -> Tuple[Finding, ...]:
    """What the running kernel still lacks."""
    if boot.booted(text):
        return ()
    there = boot.now(text)
    without = f"with {there}" if there else f"without {text}"
    return (_needs_reboot(told, f"the running kernel was booted {without}; the next boot has {text}"),)


def _needs_reboot(told: Finding, reason: str) -> Finding:
    return replace(told, status="needs_reboot", reason=reason)


def _action(argument: Argument, told: Finding) -> Action:
    return Action(
        concern=argument.concern,
        knob=argument.knob,
        what="boot.arguments",
        where=argument.name,
        before=told.now,
        after=argument.text,
        scope="boot",
        reversible="by_reboot",
        wanted_by=argument.wanted_by,
        reason=argument.reason,
        reference=argument.reference,
    )
