# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a concern asks for a kernel argument. Pure. PRIVATE to the collection.

An argument costs a reboot, on the way in and on the way out. So the concern says
in `reason` why nothing at run time does the same.
"""

from __future__ import annotations

from typing import Optional, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._error import Damaged
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.boot import BootFacts
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Finding, Plan, Value, Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.knob import Knob


def plan_argument(facts: Facts, wanted: Wanted, knob: Knob, text: Optional[str], reason: str) -> Plan:
    """Make the next boot bring the argument, and say whether the running kernel already has it.

    The text is `tsc=reliable`, or several tokens when their order matters; None asks for the kernel's own choice, so
    that ours is removed. Nothing is done about an argument that is present as wanted, whoever set it. Arguments that
    others set are never removed: they are reported. Raises Damaged when nobody knows which are ours.
    """
    boot = facts.boot
    if boot is None or boot.running is None:
        return knob.says("unknown", "the kernel's command line can't be read", None, text)
    if boot.damage:
        raise Damaged(boot.damage)
    now = boot.arguments.get(knob.place)
    if text is None:
        return _give_back(boot, wanted, knob, now, reason)
    pending = _after_reboot(boot, knob, now, text)
    if now == text or (now is None and boot.coming(text)):
        return Plan(findings=pending or (knob.finding("ok", reason, now, text),))
    if boot.provider is None:
        if boot.booted(text):
            return knob.says("ok", reason, text, text)
        by_hand = f"nearmetal doesn't write this boot loader's files; {boot.by_hand(text)}"
        return knob.says("refused", by_hand, now, text)
    change = knob.change(wanted, now, text, reason)
    return Plan(change.actions, change.findings + pending)


def _give_back(boot: BootFacts, wanted: Wanted, knob: Knob, now: Value, reason: str) -> Plan:
    running = boot.now(knob.place)
    if now is not None:
        change = knob.change(wanted, now, None, reason)
        still = f"the running kernel still has {running}"
        pending = (knob.finding("needs_reboot", still, now),) if running else ()
        return Plan(change.actions, change.findings + pending)
    if boot.named(knob.place):
        foreign = f"{knob.place} is among the kernel arguments and nearmetal didn't put it there: left alone"
        return Plan(findings=(knob.finding("ok", reason), knob.finding("advice", foreign)))
    if running:
        return knob.says("needs_reboot", f"the next boot is without {running}")
    return knob.says("ok", reason)


def _after_reboot(boot: BootFacts, knob: Knob, now: Value, text: str) -> Tuple[Finding, ...]:
    """What the running kernel still lacks."""
    if boot.booted(text):
        return ()
    running = boot.now(text)
    without = f"with {running}" if running else f"without {text}"
    reason = f"the running kernel was booted {without}; the next boot has {text}"
    return (knob.finding("needs_reboot", reason, now, text),)
