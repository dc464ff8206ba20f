# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeping irqbalance from the interrupts that network_irq places. Pure. PRIVATE to the collection.

Never by number: an interrupt's number changes with a boot or a reset of the device,
and a ban of old numbers only grows. By the driver, where a driver has nothing but
our NICs; else by a script that irqbalance asks about each device.
"""

from __future__ import annotations

from dataclasses import replace
from typing import List, Optional, Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.irqbalance import (
    IrqbalanceFacts,
    extended,
    words,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.irqbalance_process import UNIT
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.native_files import IRQBALANCE_POLICY, MARK
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.nic import PCI_DRIVERS, Nic
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Finding, Plan, Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.native import plan_file

CONCERN, KNOB = "network_irq", "irqbalance"
REFERENCE = "irqbalance(1); ec2.md 2.9"
_ASKED = "irqbalance asks it about each device"
SCRIPT_WORD = f"--policyscript={IRQBALANCE_POLICY}"

# irqbalance gives each interrupt's device and number. A device has its interfaces below net/, one of virtio one level
# deeper; Xen's have none in /sys, there the interrupt's name begins with the interface's or with vif and its number.
_SCRIPT = """#!/bin/sh
{mark} (concern network_irq): restore with state: restored, don't edit
place=
for folder in "$1"/net/* "$1"/virtio*/net/*; do
    [ -e "$folder" ] && place=${{folder%/net/*}} && place=${{place##*/}}
done
if [ -z "$place" ] && read -r name < "/sys/kernel/irq/$2/actions"; then
    name=${{name%%-*}}
    case $name in
        vif[0-9]*) place=vif-${{name#vif}} ;;
        ?*) place=$(readlink "/sys/class/net/$name/device") && place=${{place##*/}} ;;
    esac
fi
case $place in
    {places}) {then} ;;
    '') ;;
    *) {otherwise} ;;
esac
exit 0
"""


def plan_ban(
    facts: Facts, ours: Sequence[Nic], others: Sequence[Nic], every: bool, wanted: Wanted
) -> Tuple[Plan, bool]:
    """The plan that keeps irqbalance from the interrupts of `ours`, and whether they can be placed once it is done.

    `others` are NICs that aren't placed; with `every`, a NIC that appears later is.
    """
    here = facts.irqbalance
    if here is None or here.running is None or not ours:
        return Plan(), True
    text, word, stop = _way(facts, here, ours, others, every)
    if not wanted.get("persist"):
        stop = "it is told of that in its own file, which lasts, and persist is false"
    if stop or here.file is None or word is None:
        reason = (
            f"irqbalance would move them again, and {stop or 'no file of its unit could be added to'}; policy:"
            " irqbalance leaves them to it, systemctl disable --now irqbalance makes room"
        )
        return Plan(findings=(_told("refused", reason, here, None),)), False
    return _told_in_file(facts, here, here.file, text, word, wanted)


def _told_in_file(
    facts: Facts, here: IrqbalanceFacts, file: str, text: Optional[str], word: str, wanted: Wanted
) -> Tuple[Plan, bool]:
    """The word in the file that the unit reads, and the script that it may name."""
    script = plan_file(CONCERN, facts, IRQBALANCE_POLICY, text, wanted.wanted_by("policy"))
    script = replace(
        script,
        actions=tuple(replace(action, knob=KNOB, reason=_ASKED, reference=REFERENCE) for action in script.actions),
        findings=tuple(replace(found, knob=KNOB, reason=_ASKED, reference=REFERENCE) for found in script.findings),
    )
    present = here.arguments.get(file)
    in_force = here.in_force.get(file, "")
    loaded = word in (words(in_force) or ())
    configured = in_force if loaded else here.inherited if present is None else present
    there = word in (words(configured) or ())
    goal = configured if there else extended(configured, word)
    if goal is None:
        reason = f"{file} gives {here.variable} more than plain words, which nobody but you should change: add {word}"
        return Plan(findings=(_told("refused", reason, here, None),)), False
    actions: List[Action] = list(script.actions)
    if loaded and not actions:
        told = _told("ok", f"irqbalance leaves them alone: {word}", here, goal)
        return Plan(findings=(*script.findings, told)), True
    restart = bool(wanted.get("restart_irqbalance"))
    if restart or not there:
        actions.append(_action("in_force" if restart else "arguments", file, present, goal, word, wanted))
    changes = (_told("would_change", f"{word} in {file} keeps irqbalance from them", here, goal),) if actions else ()
    if restart:
        return Plan(tuple(actions), (*script.findings, *changes)), True
    reason = f"{word} is in {file}; systemctl restart {UNIT}, or restart_irqbalance: true, then they can be placed"
    return Plan(tuple(actions), (*script.findings, *changes, _told("needs_restart", reason, here, goal))), False


def _way(
    facts: Facts, here: IrqbalanceFacts, ours: Sequence[Nic], others: Sequence[Nic], every: bool
) -> Tuple[Optional[str], Optional[str], str]:
    """The script's text or None, the word for irqbalance, and what stands in the way."""
    drivers = {one.driver for one in ours}
    shared = drivers & {one.driver for one in others}
    if len(drivers) == 1 and drivers <= set(PCI_DRIVERS) and not shared and "banmod" in here.options:
        return None, f"--banmod={drivers.pop()}", ""
    named = [word for word in here.running or () if word.startswith(("--policyscript", "-l")) and word != SCRIPT_WORD]
    if named:
        return None, None, f"it has a policy script already, {named[0]}: let that print ban=true for them"
    if "policyscript" not in here.options:
        return None, None, "this version can be told neither a driver nor a script"
    if here.confined:
        return None, None, "SELinux keeps it from starting a script, which interfaces of different kinds need"
    return _script(ours, others, every), SCRIPT_WORD, ""


def _script(ours: Sequence[Nic], others: Sequence[Nic], every: bool) -> str:
    """The script that says ban=true for our NICs: all but the others, or those alone that are named."""
    ban = "echo ban=true"
    listed = others if every else ours
    places = "|".join(sorted(one.place for one in listed)) or "-"
    then, otherwise = (":", ban) if every else (ban, ":")
    return _SCRIPT.format(mark=MARK, places=places, then=then, otherwise=otherwise)


def _action(name: str, file: str, before: Optional[str], after: str, word: str, wanted: Wanted) -> Action:
    return Action(
        concern=CONCERN,
        knob=KNOB,
        what=f"irqbalance.{name}",
        where=file,
        before=before,
        after=after,
        reason=f"{word} keeps irqbalance from interrupts that nearmetal places, whatever their numbers are",
        reference=REFERENCE,
        scope="boot",
        wanted_by=wanted.wanted_by("policy"),
    )


def _told(status: str, reason: str, here: IrqbalanceFacts, goal: Optional[str]) -> Finding:
    present = here.arguments.get(here.file or "")
    return Finding(CONCERN, KNOB, status, reason, present, goal, REFERENCE, here.file or "", owner="irqbalance")
