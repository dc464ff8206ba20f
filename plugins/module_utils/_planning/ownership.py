# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One owner per knob: nearmetal doesn't set what somebody else is configured to set. Pure. PRIVATE to the collection.

The engine applies it to every plan, so that no concern has to.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import Callable, Container, Dict, Iterator, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from .._facts.at_boot import Setting
from .._facts.owners import OwnersFacts
from .._number import is_number
from .._plan import Action, Finding, Plan, Value, Wanted
from . import unit
from .knob import EARLIER, Knob, without
from .options import LAST

REFERENCE = "docs/ownership.md"

# Levers whose places are the names of settings of tuned.
_BY_PLACE: Mapping[str, str] = {"sysctl": "sysctl.", "boot.arguments": "cmdline."}
# Settings of tuned with several fields of an interface's table, in ethtool's words.
_TABLES = ("net.ring", "net.coalesce", "net.channels", "net.features")
_CODED = re.compile(r"(?<!\S)(?:0[xX][0-9a-fA-F]{1,16}|0[0-7]{1,20})(?!\S)")
_FIELDS = {"on": "1", "off": "0"}
# Who wrote a file of network settings, as far as its name tells.
# amazon-ec2-net-utils links 80-ec2.network for each interface.
_WRITERS = {
    r"/80-ec2\.network$|^/run/systemd/network/70-[^/]+\.network$": "amazon-ec2-net-utils",
    r"cloud-init[^/]*$": "cloud-init",
    r"netplan[^/]*$": "netplan",
}
_WAYS_OUT = "change it there, or set owner_conflict: take_over"


class Owner(NamedTuple):
    """Somebody else who sets a knob, and a sentence about it."""

    name: str
    says: str


def plan_beside_owners(
    knobs: Sequence[Knob], owners: OwnersFacts, plan_of: Callable[[Wanted], Plan], wanted: Wanted
) -> Plan:
    """The plan without the knobs that somebody else owns; a finding refuses each of them and names its owner.

    The declarations of the concern's knobs say who may own them. The other knobs are planned as if the owned
    knobs weren't wanted, so that the file for the next boot has only the others. A knob that has nearmetal's value,
    but not the owner's, is owned as well: the owner sets its own value when it starts again. With
    `owner_conflict: take_over` the plan stays, and the owner is named as advice.
    """
    plan = plan_of(wanted)
    if owners.immutable is not None:
        return _immutable_plan(owners.immutable, plan)
    owned: Dict[Tuple[str, str], Tuple[Action, Owner]] = {}
    for action in plan.actions:
        owner = _owner(knobs, owners, action) or _earlier(wanted, action) if action.after is not None else None
        if owner is not None:
            owned.setdefault(_key(action), (action, owner))
    for present in _as_wanted(knobs, owners, plan):
        owner = _setter(knobs, owners, present)
        if owner is not None:
            owned.setdefault(_key(present), (present, owner))
    if not owned:
        return plan
    if wanted.get("owner_conflict") == "take_over":
        advice = tuple(
            _finding(action, "advice", f"{owner.says}, {_outcome(owners, action, owner, wanted)}", owner.name)
            for action, owner in owned.values()
        )
        return plan._replace(findings=plan.findings + advice)
    owned_knobs = {knob for (knob, place), (action, _owner) in owned.items() if not place and action.scope == "runtime"}
    other_plan = plan_of(wanted._replace(options=without(knobs, wanted.options, owned_knobs)))
    actions = tuple(action for action in other_plan.actions if not _is_owned(owned, action))
    # One file has all values of a concern, so it isn't written if it would have an owned value. None has an argument.
    write_files = not any((action.knob, "") in owned for action in other_plan.actions if action.scope == "runtime")
    refused = tuple(
        _finding(action, "refused", f"{owner.says}; {_WAYS_OUT}", owner.name) for action, owner in owned.values()
    )
    advice = tuple(finding for finding in plan.findings if finding.status == "advice" and _is_owned(owned, finding))
    files = [action.where for action in other_plan.actions if action.what == "files"]
    findings = tuple(
        finding
        for finding in other_plan.findings
        if not _is_owned(owned, finding) and (write_files or finding.where not in files)
    )
    actions = tuple(action for action in actions if write_files or action.what != "files")
    remember = {_remembered(key): f"{owner.name}: {owner.says}" for key, (_action, owner) in owned.items()}
    return plan._replace(actions=actions, findings=refused + advice + findings, remember={**plan.remember, **remember})


def _key(action: Action) -> Tuple[str, str]:
    """A knob, or the knob of one interface, as each interface has its own owner."""
    return action.knob, action.where if action.what.startswith("network.") else ""


def _remembered(key: Tuple[str, str]) -> Tuple[str, str]:
    """Under what the owner of a knob is remembered."""
    return key[0], f"owner {key[1]}"


def _is_owned(owned: Container[Tuple[str, str]], part: Union[Action, Finding]) -> bool:
    return (part.knob, "") in owned or (part.knob, part.where) in owned


def _immutable_plan(image: str, plan: Plan) -> Plan:
    """The plan for a system whose image owns every setting."""
    reason = f"this system is immutable ({image}): change its image, or its own settings"
    changed = {action.knob: action for action in plan.actions if action.after is not None}
    refused = tuple(_finding(action, "refused", reason, image) for action in changed.values())
    other_findings = tuple(
        finding._replace(status="refused", reason=reason, owner=image) if finding.status == "would_change" else finding
        for finding in plan.findings
        if finding.knob not in changed
    )
    remember = {_remembered(_key(action)): f"{image}: {reason}" for action in plan.actions}
    return Plan((), refused + other_findings, remember=remember)


def _as_wanted(knobs: Sequence[Knob], owners: OwnersFacts, plan: Plan) -> Iterator[Action]:
    """For each knob that is already as wanted, the action that would have set it."""
    for finding in plan.findings:
        if finding.status != "ok" or finding.wanted is None:
            continue
        name = f"sysctl.{finding.where}"
        parameter = name in owners.tuned or any(setting.name == name for setting in owners.at_boot)
        knob = next((knob for knob in knobs if knob.name == finding.knob and knob.comparable), None)
        lever = "sysctl" if parameter else knob.lever if knob is not None else None
        goals = {finding.where: finding.wanted}
        if lever is not None and lever.startswith("block.") and isinstance(finding.wanted, Mapping):
            goals = dict(finding.wanted)
        for where, goal in goals.items() if lever is not None else ():
            declared = Knob(finding.concern, finding.knob, str(lever), finding.reference, place=where)
            yield declared.action("user", finding.now, goal, finding.reason)


def _owner(knobs: Sequence[Knob], owners: OwnersFacts, action: Action) -> Optional[Owner]:
    """Who owns what the action changes; None for nobody."""
    if owners.kubelet and any(
        knob.kubelet for knob in knobs if knob.lever == action.what and knob.place in ("", action.where)
    ):
        return Owner("kubelet", "kubelet owns it on this Kubernetes node: set it in the node's own configuration")
    return _setter(knobs, owners, action)


def _earlier(wanted: Wanted, action: Action) -> Optional[Owner]:
    """The owner whom an earlier run found; at a boot it may not run yet, or its files may not be there."""
    name, _colon, sentence = wanted.remembered.get(_remembered(_key(action)), "").partition(": ")
    return Owner(name, f"{sentence}{EARLIER}") if sentence else None


def _setter(knobs: Sequence[Knob], owners: OwnersFacts, action: Action) -> Optional[Owner]:
    """Who else is configured to set what the action changes, to another value; None for nobody."""
    declared = (knob for knob in knobs if knob.lever == action.what and knob.place in ("", action.where))
    knob = next(declared, Knob(action.concern, action.knob))
    settings = knob.tuned
    if action.what in _BY_PLACE:
        settings = (_BY_PLACE[action.what] + action.where,)
    for name in (*settings, *(f"sysfs.{path}" for path in knob.at_boot)):
        text = _read_tuned(owners.tuned, name)
        tuned_value = _meaning(knob, name, text, action) if text is not None else None
        if tuned_value is not None and not _same_value(tuned_value, action.after):
            return Owner("tuned", f"tuned sets {name} = {text} (profile {owners.tuned_profile})")
    names = {*settings, f"{action.what} {action.where}", *(f"sysfs.{path}" for path in knob.at_boot)}
    made = [setting for setting in owners.at_boot if any(_alike(setting.name, name) for name in names)]
    # The last one counts, or each of those whose order nobody promises.
    for setting in [setting for setting in made if not setting.in_order] or made[-1:]:
        if setting.value is None or not _same_value(_at_boot(knob, setting, action), action.after):
            writers = (writer for pattern, writer in _WRITERS.items() if re.search(pattern, setting.file))
            return Owner(next(writers, setting.file), f"{setting.file} {setting.says}")
    return None


def _alike(setting: str, name: str) -> bool:
    """Whether two names stand for the same files, of which either may be a pattern."""
    return setting == name or (name.startswith("sysfs.") and (fnmatchcase(name, setting) or fnmatchcase(setting, name)))


def _at_boot(knob: Knob, setting: Setting, action: Action) -> str:
    """The value that a setting gives at boot in nearmetal's words."""
    words = knob.at_boot.get(setting.name[len("sysfs.") :], {})
    text_of = _plain(setting.value or "") if action.what == "sysctl" else setting.value or ""
    value = next((word for word, text in words.items() if text == text_of), text_of)
    return _meaning(knob, setting.name, value, action) or ""


def _plain(text: str) -> str:
    """Numbers of a kernel parameter as the kernel shows them: it takes 0x10 for 16, and 010 for 8."""
    numbers = {word: int(word, 0 if word[1] in "xX" else 8) for word in _CODED.findall(text)}
    return " ".join(str(numbers.get(word, word)) for word in text.split())


def _read_tuned(settings: Mapping[str, str], name: str) -> Optional[str]:
    """The active profile's value of a setting, None without one; a profile may name files in /sys by a pattern."""
    if not name.startswith("sysfs."):
        return settings.get(name)
    matching = [value for pattern, value in settings.items() if fnmatchcase(name, pattern)]
    return matching[-1] if matching else None


def _meaning(knob: Knob, name: str, text: str, action: Action) -> Optional[str]:
    """tuned's value in nearmetal's words; None when tuned leaves this field of a table alone."""
    if name in _TABLES:
        words = re.split(r"[:;,\s]+", text)
        field = action.where.rpartition("/")[2].replace("_", "-") if name != "net.channels" else "combined"
        value = dict(zip(words[::2], words[1::2])).get(field)
        return _FIELDS.get(value, value) if value is not None else None
    meanings = knob.tuned_words.get(name)
    if meanings:
        return meanings.get(text, text)
    if name == "disk.readahead" and text.endswith(" s") and is_number(text[:-2]):  # sectors
        return str(int(text[:-2]) // 2)
    if name == "disk.elevator":  # the first that the kernel offers
        return str(action.after) if str(action.after) in text.split("|") else text.partition("|")[0]
    if name.startswith("cmdline.") and action.what != "boot.arguments":
        return text.partition("=")[2]
    return text


def _outcome(owners: OwnersFacts, action: Action, owner: Owner, wanted: Wanted) -> str:
    """Who has the last word when the value of an owned knob is set anyway."""
    if owner.name == "tuned" and action.what == "sysctl" and owners.tuned_reapplies and wanted.get("persist"):
        return "then reads /etc/sysctl.d, where nearmetal's file has the last word (reapply_sysctl)"
    if wanted.get("persist") == LAST and owner.name != "tuned":
        return f"and {unit.SERVICE_NAME} sets it again when the boot is over (persist: last)"
    return "and will set it again: change it there"


def _same_value(tuned_value: str, wanted: Value) -> bool:
    """Whether tuned sets the wanted value; a wanted table must have that value for each CPU or device.

    Values from 2048 on satisfy tuned's `>2048`, values up to 2048 satisfy `<2048`.
    """
    each = wanted.values() if isinstance(wanted, Mapping) else (wanted,)
    values = {" ".join(str(int(value) if isinstance(value, bool) else value).split()) for value in each}
    bound = tuned_value[1:].strip()
    if tuned_value[:1] in "<>" and all(is_number(value) for value in (bound, *values)):
        return all(int(value) >= int(bound) if tuned_value[0] == ">" else int(value) <= int(bound) for value in values)
    return values == {" ".join(tuned_value.split())}


def _finding(action: Action, status: str, reason: str, owner: str) -> Finding:
    return Finding(
        concern=action.concern,
        knob=action.knob,
        status=status,
        reason=reason,
        now=action.before,
        wanted=action.after,
        reference=REFERENCE,
        where=action.where,
        owner=owner,
    )
