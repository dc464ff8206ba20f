# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeping irqbalance off the interrupts that network_irq places. Pure. PRIVATE to the collection.

Never by number: an interrupt's number changes with a boot or a reset of the device,
and a ban of old numbers only grows. By the driver, where a driver serves only
our NICs; else by a script that irqbalance asks about each device.
"""

from __future__ import annotations

from typing import Optional, Sequence, Tuple

from ..._facts.facts import Facts
from ..._facts.irqbalance import IrqbalanceFacts, extended, words
from ..._facts.irqbalance_process import UNIT
from ..._facts.native_files import IRQBALANCE_POLICY, MARK
from ..._facts.nic import PCI_DRIVERS, Nic
from ..._plan import Finding, Plan, Wanted
from ..._planning.knob import Knob
from ..._planning.native import change_file

KNOB = Knob(
    "network_irq",
    "irqbalance",
    "irqbalance.arguments",
    "irqbalance(1); Graviton guide",
    option="policy",
    scope="boot",
    takes_effect="boot",
)
_SCRIPT_FILE = KNOB.at(IRQBALANCE_POLICY)._replace(lever="files")
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
    facts: Facts, placed: Sequence[Nic], others: Sequence[Nic], every: bool, wanted: Wanted
) -> Tuple[Plan, bool]:
    """The plan that keeps irqbalance off the interrupts of `placed`, and whether they can be placed after it.

    `others` are NICs whose interrupts aren't placed; with `every`, those of NICs that appear later are.
    """
    irqbalance = facts.irqbalance
    if not placed:
        return Plan(), True
    text, word, obstacle = _ban_method(irqbalance, placed, others, every)
    if irqbalance.running is None:
        # Its configuration stays for the time when it runs again.
        file = irqbalance.file or ""
        if word is None or word not in (words(irqbalance.arguments.get(file, "")) or ()):
            return Plan(), True
        irqbalance = irqbalance._replace(in_force=irqbalance.arguments)
        return _configuration_plan(facts, irqbalance, file, text, word, wanted)
    if not wanted.get("persist"):
        obstacle = (
            "only a lasting entry in its configuration file keeps it off them, which persist: false doesn't allow"
        )
    if obstacle or irqbalance.file is None or word is None:
        reason = (
            "irqbalance would move these interrupts again:"
            f" {obstacle or 'its unit reads no file that nearmetal could edit'}; leave them to irqbalance with policy:"
            " irqbalance, or switch irqbalance off with systemctl disable --now irqbalance"
        )
        return Plan(findings=(_finding("refused", reason, irqbalance, None),)), False
    return _configuration_plan(facts, irqbalance, irqbalance.file, text, word, wanted)


def _configuration_plan(
    facts: Facts, irqbalance: IrqbalanceFacts, file: str, text: Optional[str], word: str, wanted: Wanted
) -> Tuple[Plan, bool]:
    """The plan for the word in the file that irqbalance's unit reads, and for the script; whether it is in force."""
    reason = "irqbalance asks this script about each device"
    script = change_file(facts, _SCRIPT_FILE, text, wanted.wanted_by("policy"), reason)
    findings, actions = script.findings, list(script.actions)
    present = irqbalance.arguments.get(file)
    in_force = irqbalance.in_force.get(file, "")
    loaded = word in (words(in_force) or ())
    configured = in_force if loaded else irqbalance.inherited if present is None else present
    named = word in (words(configured) or ())
    goal = configured if named else extended(configured, word)
    if goal is None:
        reason = (
            f"{irqbalance.variable} in {file} has quotes or escapes, so nearmetal doesn't edit it: add {word} yourself"
        )
        return Plan(findings=(_finding("refused", reason, irqbalance, None),)), False
    if loaded and (not actions or irqbalance.running is None):
        left_alone = _finding("ok", f"irqbalance leaves these interrupts alone: {word}", irqbalance, goal)
        return Plan(tuple(actions), (*findings, left_alone)), True
    restart = bool(wanted.get("restart_irqbalance"))
    if restart or not named:
        lever = "irqbalance.in_force" if restart else "irqbalance.arguments"
        reason = f"{word} keeps irqbalance off the interrupts that nearmetal places, whatever their numbers are"
        actions.append(KNOB.at(file)._replace(lever=lever).action(wanted.wanted_by("policy"), present, goal, reason))
    if actions:
        reason = f"{word} in {file} keeps irqbalance off these interrupts"
        findings += (_finding("would_change", reason, irqbalance, goal),)
    if restart:
        return Plan(tuple(actions), findings), True
    without = f"asked {IRQBALANCE_POLICY} before it changed" if loaded else "runs without it"
    reason = (
        f"{word} is in {file}, but irqbalance {without}: run systemctl restart {UNIT}, or set"
        " restart_irqbalance: true, then the interrupts can be placed"
    )
    return Plan(tuple(actions), (*findings, _finding("needs_restart", reason, irqbalance, goal))), False


def _ban_method(
    irqbalance: IrqbalanceFacts, placed: Sequence[Nic], others: Sequence[Nic], every: bool
) -> Tuple[Optional[str], Optional[str], str]:
    """The script's text or None, irqbalance's command-line word or None, and the obstacle or an empty text."""
    drivers = {nic.driver for nic in placed}
    shared = drivers & {nic.driver for nic in others}
    if len(drivers) == 1 and drivers <= set(PCI_DRIVERS) and not shared and "banmod" in irqbalance.options:
        return None, f"--banmod={drivers.pop()}", ""
    named = [
        word for word in irqbalance.running or () if word.startswith(("--policyscript", "-l")) and word != SCRIPT_WORD
    ]
    if named:
        return (
            None,
            None,
            f"it already has a policy script, {named[0]}: make that script print ban=true for their devices",
        )
    if "policyscript" not in irqbalance.options:
        return None, None, "this version takes neither --banmod nor --policyscript"
    if irqbalance.confined:
        return None, None, "SELinux keeps it from starting a policy script, which interfaces of different drivers need"
    return _script(placed, others, every), SCRIPT_WORD, ""


def _script(placed: Sequence[Nic], others: Sequence[Nic], every: bool) -> str:
    """The script that prints ban=true for all NICs but the others, or only for those that are placed."""
    ban = "echo ban=true"
    listed = others if every else placed
    places = "|".join(sorted(nic.place for nic in listed)) or "-"
    listed_answer, other_answer = (":", ban) if every else (ban, ":")
    return _SCRIPT.format(mark=MARK, places=places, then=listed_answer, otherwise=other_answer)


def _finding(status: str, reason: str, irqbalance: IrqbalanceFacts, goal: Optional[str]) -> Finding:
    file = irqbalance.file or ""
    finding = KNOB.at(file).finding(status, reason, irqbalance.arguments.get(file), goal)
    return finding._replace(owner="irqbalance")
