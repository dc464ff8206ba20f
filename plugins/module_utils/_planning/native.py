# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How values survive a reboot: literal values in files, all others by the unit. Pure. PRIVATE to the collection."""

from __future__ import annotations

import posixpath
from typing import Collection, Dict, Mapping, NamedTuple, Optional, Sequence, Tuple

from .._facts.facts import Facts
from .._facts.native_files import MARK, NETWORKD
from .._plan import Action, Plan
from .._words import LONGEST_VALUE, in_words
from . import unit
from .knob import Knob


class _Reader(NamedTuple):
    """The program that reads the files of a folder."""

    reference: str
    sentence: str  # what it does with nearmetal's file


_READERS: Mapping[str, _Reader] = {
    "/etc/tmpfiles.d": _Reader("tmpfiles.d(5)", "systemd-tmpfiles writes it"),
    "/etc/sysctl.d": _Reader("sysctl.d(5)", "systemd-sysctl writes it"),
    "/etc/systemd/networkd.conf.d": _Reader(
        "networkd.conf(5); systemd, pull request 19287",
        "without this file systemd-networkd removes other programs' rules and routes whenever it starts",
    ),
    "/etc/udev/rules.d": _Reader("udev(7)", "udev writes it for each disk that appears, and for all disks"),
}


# What networkd_conf has.
FOREIGN_STAYS = {"ManageForeignRoutes": "no", "ManageForeignRoutingPolicyRules": "no"}

_AGAIN = "persist: last sets it again when the boot is over"

# The path of a concern's file, and its text for these lines; None where the file has none of them.
File = Tuple[str, Optional[str]]


def tmpfiles(concern: str, at_boot: Mapping[str, str]) -> File:
    """A tmpfiles.d file that writes kernel path → value at each boot.

    `w!` writes only at boot, so that a package's `systemd-tmpfiles --create` doesn't
    undo what somebody set at run time.
    """
    lines = [f"w! {path} - - - - {value}" for path, value in at_boot.items() if path.startswith("/")]
    return f"/etc/tmpfiles.d/nearmetal-{concern}.conf", _text(concern, lines)


def sysctl_d(concern: str, at_boot: Mapping[str, str]) -> File:
    """A sysctl.d file that sets kernel parameter → value at each boot, after the distribution's."""
    lines = [f"{key} = {value}" for key, value in at_boot.items() if not key.startswith("/")]
    return f"/etc/sysctl.d/99-nearmetal-{concern}.conf", _text(concern, lines)


def udev_rules(concern: str, at_boot: Mapping[str, str]) -> File:
    """udev rules, which sort before those of the unit: it plans on what they set."""
    return f"/etc/udev/rules.d/90-nearmetal-{concern}.rules", _text(concern, at_boot)


def networkd_conf(concern: str, at_boot: Mapping[str, str]) -> File:
    """A file for systemd-networkd, by which it leaves rules and routes of others alone."""
    return NETWORKD, _text(concern, [f"{name}={value}" for name, value in at_boot.items()], "[Network]")


def _text(concern: str, lines: Collection[str], *section: str) -> Optional[str]:
    head = f"{MARK} (concern {concern}): restore with state: restored, don't edit"
    return "\n".join((head, *section, *lines)) + "\n" if lines else None


def plan_file(concern: str, facts: Facts, path: str, text: Optional[str], wanted_by: str) -> Plan:
    """The plan by which a file has `text`, or (None) doesn't exist. Its finding shows the path, not the text."""
    reader = _READERS.get(posixpath.dirname(path), _READERS["/etc/tmpfiles.d"])
    knob = Knob(concern, "persist", "files", reader.reference, place=path, scope="boot")
    kept = f"the kernel forgets it at a reboot; {reader.sentence} at each boot"
    reason = reader.sentence if path == NETWORKD else kept
    if text is None:
        reason = "no longer wanted at boot"
    elif text == facts.files.get(path):
        reason = "persisted"
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
