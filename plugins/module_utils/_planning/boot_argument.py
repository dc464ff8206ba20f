# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a concern asks for a kernel argument. Pure. PRIVATE to the collection.

An argument costs a reboot, when it is set and when it is taken back. So the concern
says in `reason` why no setting at run time does the same.
"""

from __future__ import annotations

from typing import Optional

from .._error import Damaged
from .._facts.boot import BootFacts
from .._facts.facts import Facts
from .._plan import Plan, Value, Wanted, joined
from .knob import Knob


def plan_argument(facts: Facts, wanted: Wanted, knob: Knob, text: Optional[str], reason: str) -> Plan:
    """The plan that gives the next boot the argument, with a finding when the running kernel lacks it.

    `text` is an argument such as `tsc=reliable`, or several tokens when their order matters; None removes nearmetal's
    own. Nothing is done about an argument that is present as wanted, whoever set it. Arguments that others set are
    reported and never removed. Raises Damaged when nobody knows which arguments are nearmetal's.
    """
    boot = facts.boot
    if boot.running is None:
        return knob.says("unknown", "the kernel command line can't be read", None, text)
    if boot.damage:
        raise Damaged(boot.damage)
    now = boot.arguments.get(knob.place)
    if text is None:
        return _removal(boot, wanted, knob, now, reason)
    pending = _after_reboot(boot, knob, now, text)
    if now == text or (now is None and boot.next_boot_has(text)):
        return pending if pending.findings else knob.says("ok", reason, now, text)
    if boot.provider is None:
        if boot.booted(text):
            return knob.says("ok", reason, text, text)
        by_hand = f"nearmetal doesn't write this boot loader's files; {boot.by_hand(text)}"
        return knob.says("refused", by_hand, now, text)
    return joined(knob.change(wanted, now, text, reason), pending)


def _removal(boot: BootFacts, wanted: Wanted, knob: Knob, now: Value, reason: str) -> Plan:
    running = boot.running_arguments(knob.place)
    if now is not None:
        pending = knob.says("needs_reboot", f"the running kernel still has {running}", now) if running else Plan()
        return joined(knob.change(wanted, now, None, reason), pending)
    if boot.named(knob.place):
        foreign = f"{knob.place} is among the kernel arguments and nearmetal didn't put it there: it is left alone"
        return joined(knob.says("ok", reason), knob.says("advice", foreign))
    if running:
        return knob.says("needs_reboot", f"the next boot will run without {running}")
    return knob.says("ok", reason)


def _after_reboot(boot: BootFacts, knob: Knob, now: Value, text: str) -> Plan:
    """The finding for an argument that the running kernel lacks."""
    if boot.booted(text):
        return Plan()
    running = boot.running_arguments(text)
    booted = f"with {running}" if running else f"without {text}"
    reason = f"the running kernel was booted {booted}; the next boot has {text}"
    return knob.says("needs_reboot", reason, now, text)
