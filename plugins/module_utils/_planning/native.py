# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How values survive a reboot: literal values in files, all others by the unit. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Callable, Dict, Mapping, NamedTuple, Optional, Sequence

from .._facts.facts import Facts
from .._facts.native_files import MARK, NETWORKD
from .._plan import Action, Plan
from .._words import LONGEST_VALUE, in_words
from . import unit
from .knob import Knob


class NativeFile(NamedTuple):
    """A file of a concern, by which a program of the host sets values at each boot."""

    path: str  # with {} for the concern
    reference: str
    reason: str
    line: Callable[[str, str], str]  # of a name in `at_boot` and its value; empty for what the file doesn't have
    section: str = ""

    def text(self, concern: str, at_boot: Mapping[str, str]) -> Optional[str]:
        """What it has for these values; None for a file that isn't needed."""
        lines = [*filter(None, (self.line(name, value) for name, value in at_boot.items()))]
        head = f"{MARK} (concern {concern}): restore with state: restored, don't edit"
        return "\n".join(filter(None, (head, self.section, *lines))) + "\n" if lines else None


_KEPT = "the kernel forgets it at a reboot; {} at each boot"
# `w!` writes only at boot, so that a package's `systemd-tmpfiles --create` doesn't undo what somebody set at run time.
tmpfiles = NativeFile(
    "/etc/tmpfiles.d/nearmetal-{}.conf",
    "tmpfiles.d(5)",
    _KEPT.format("systemd-tmpfiles writes it"),
    lambda name, value: f"w! {name} - - - - {value}" if name.startswith("/") else "",
)
# After the distribution's.
sysctl_d = NativeFile(
    "/etc/sysctl.d/99-nearmetal-{}.conf",
    "sysctl.d(5)",
    _KEPT.format("systemd-sysctl writes it"),
    lambda name, value: "" if name.startswith("/") else f"{name} = {value}",
)
# They sort before those of the unit, which plans on what they set.
udev_rules = NativeFile(
    "/etc/udev/rules.d/90-nearmetal-{}.rules",
    "udev(7)",
    _KEPT.format("udev writes it for each disk that appears, and for all disks"),
    lambda rule, _value: rule,
)
networkd_conf = NativeFile(
    NETWORKD,
    "networkd.conf(5); systemd, pull request 19287",
    "without this file systemd-networkd removes other programs' rules and routes whenever it starts",
    lambda name, value: f"{name}={value}",
    "[Network]",
)
# What networkd_conf has.
FOREIGN_STAYS = {"ManageForeignRoutes": "no", "ManageForeignRoutingPolicyRules": "no"}

_AGAIN = "persist: last sets it again when the boot is over"


def plan_file(concern: str, facts: Facts, file: NativeFile, text: Optional[str], wanted_by: str) -> Plan:
    """The plan by which a file has `text`, or (None) doesn't exist. Its finding shows the path, not the text."""
    knob = Knob(concern, "persist", "files", file.reference, place=file.path.format(concern), scope="boot")
    present = text is not None and text == facts.files.get(knob.place)
    reason = "no longer wanted at boot" if text is None else "persisted" if present else file.reason
    return change_file(facts, knob, text, wanted_by, reason)


def change_file(facts: Facts, knob: Knob, text: Optional[str], wanted_by: str, reason: str) -> Plan:
    """The same for the file at the knob's place, in the knob's name."""
    present = facts.files.get(knob.place)
    now, goal = (knob.place if content is not None else None for content in (present, text))
    if present == text:
        return Plan() if text is None else knob.says("ok", reason, now, goal)
    action = knob.action(wanted_by, present, text, reason)
    return Plan((action,), (knob.finding("would_change", reason, now, goal),))


def plan_lost(
    plan: Plan, facts: Facts, path: str, text: Optional[str], actions: Sequence[Action], knobs: Sequence[Knob]
) -> Plan:
    """The plan of a file that stays, with the values that this boot lost although the file is older than the boot."""
    lost: Dict[str, str] = {}
    if text is None or plan.actions or ("files", path) not in facts.before_boot:
        return plan
    for action in actions:
        knob = next((knob for knob in knobs if knob.lever == action.what), None)
        names = (action.where,) if action.what == "sysctl" else tuple(knob.at_boot) if knob is not None else ()
        named = next((name for name in names or (action.what.partition(".")[2],) if name in text), "")
        if named and action.key in facts.before_boot and action.before is not None:
            path = named if named.startswith("/") else f"*/{named.replace('.', '/')}"
            lost[action.knob] = (
                f"{in_words(action.before, 'nothing', LONGEST_VALUE)} ({action.knob}{facts.setter(path)})"
            )
    if not lost:
        return plan
    reason = f"drift: something sets it after nearmetal's file; last seen to be {', '.join(lost.values())}; {_AGAIN}"
    return plan._replace(findings=tuple(finding._replace(status="unknown", reason=reason) for finding in plan.findings))


def by_unit(concern: str, facts: Facts, last: bool) -> Plan:
    """The finding that the unit plans the concern again at each boot, or `refused` where the unit can't run.

    Needs the domain `unit`. For plans with `replan` that are to last; with `last`, past what a boot starts.
    """
    knob = Knob(concern, "persist", reference=unit.REFERENCE)
    obstacle = unit.obstacle(facts.unit)
    if obstacle:
        return knob.says(
            "refused",
            f"{obstacle}; so the value lasts only until the next boot: run this again after each boot,"
            " or set persist: false",
        )
    installed = facts.unit.enabled and facts.unit.agent is not None
    status, now = ("ok", unit.SERVICE_NAME) if installed else ("would_change", None)
    size = "for the size that the host has then"
    reason = f"nearmetal.service plans it again at each boot, {f'after {unit.LAST}' if last else size}"
    return Plan(findings=(knob.finding(status, reason, now, unit.SERVICE_NAME),), replan=True)
