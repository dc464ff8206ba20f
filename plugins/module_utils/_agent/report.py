# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""`nearmetal status`: collect what an engineer asks for at 3 a.m., and draw it. PRIVATE to the collection."""

from __future__ import annotations

import os
import platform
import time
from typing import Any, Dict, Iterator, List, Optional

from .._engine.requests import all_stored
from .._engine.restore import waits_for_boot
from .._engine.run import Conditions, Run, plan_run
from .._facts.facts import UNOBSERVED, Facts, observe
from .._facts.json_data import json_data
from .._facts.state_files import DISABLED
from .._host import store
from .._host.host import WritableHost
from .._memory import failures
from .._memory.entry import Entry
from .._memory.journal import Journal
from .._memory.stored import CHOICE, Stored, StoredWanted
from .._plan import Finding
from .._planning.unit import METRICS
from .._planning.unit import NAME as UNIT
from .._version import VERSION
from .._words import clipped, folded, in_words, status_words

WIDTH = 80
STATUS_WIDTH = 16  # of the column of statuses
VALUE_WIDTH = 60  # of one value
# What to run in place of the command `nearmetal`, which comes with the unit.
MODULE = "ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command"
# Status of a finding → its color (SGR).
_COLORS = {
    "ok": "32",
    "would_change": "33;1",
    "needs_reboot": "33",
    "needs_restart": "33",
    "refused": "31",
    "unchangeable": "31",
    "unknown": "31",
    "not_applicable": "2",
    "waived": "2",
    "advice": "36",
}

# The outcomes of what isn't a concern.
_DAMAGED = ("journal", "wanted", UNIT)


def collect(host: WritableHost) -> Dict[str, Any]:
    """The whole state as plain data. Plans what is stored, changes nothing."""
    planned = plan_run(host, all_stored, conditions=Conditions(lenient=True))
    facts = observe(host, ("platform", "unit", "owners"))
    stored = StoredWanted(host)
    instance = facts.platform.instance_id if facts.platform else None
    entries = Journal(host, instance).entries()
    concerns = [_concern(host, name, stored.get(name), planned, entries) for name in _names(stored, entries)]
    knobs = [(concern["name"], knob) for concern in concerns for knob in concern["knobs"]]
    return {
        "nearmetal": VERSION,
        "host": platform.node() if not host.root else "",
        "platform": json_data(facts.platform),
        "concerns": concerns,
        "drift": [f"{name}.{knob['knob']}" for name, knob in knobs if knob["status"] == "would_change"],
        "needs_reboot": [f"{name}.{knob['knob']}" for name, knob in knobs if knob["status"] == "needs_reboot"],
        "failed": [{"concern": name, **failure._asdict()} for name, failure in failures.read(host).items()],
        "damaged": [outcome.error for outcome in planned.outcomes if outcome.error and outcome.name in _DAMAGED],
        "others": _others(facts),
        "unit": {**(json_data(facts.unit) or {}), "planned": _planned(host)},
    }


def _others(facts: Facts) -> List[str]:
    """Who else may set what is tuned on this host."""
    if facts.owners is UNOBSERVED:
        return []
    profile = f" (profile {facts.owners.tuned_profile})" if facts.owners.tuned_profile else ""
    return [f"{name}{profile if name == 'tuned' else ''}" for name in facts.owners.running]


def _names(stored: StoredWanted, entries: List[Entry]) -> List[str]:
    names = [*stored.names(), *(entry.concern for entry in entries)]
    return [name for name in dict.fromkeys(names) if name not in (CHOICE, METRICS, UNIT)]


def _concern(
    host: WritableHost, name: str, stored: Optional[Stored], planned: Run, entries: List[Entry]
) -> Dict[str, Any]:
    outcome = next((outcome for outcome in planned.outcomes if outcome.name == name), None)
    originals = {(entry.knob, entry.where): entry for entry in entries if entry.concern == name}
    replanned = stored is not None and stored.replan
    waiting = waits_for_boot(host, list(originals.values())) if outcome is None else ()
    present = waiting or (outcome.plan.findings if outcome else ())
    findings = (_by_unit(finding, originals) if replanned else finding for finding in present)
    knobs = [_knob(finding, originals) for finding in findings]
    return {
        "name": name,
        "run": stored.run if stored else None,
        "version": stored.version if stored else None,
        "at": stored.at if stored else None,
        "options": dict(stored.options) if stored else None,
        "error": outcome.error if outcome else "" if waiting else _unplanned(stored),
        "knobs": knobs,
    }


def _by_unit(finding: Finding, originals: Dict[Any, Entry]) -> Finding:
    """The finding about a file that no run wrote: it isn't missing, as neither a bake nor the unit writes one."""
    never = finding.status == "would_change" and finding.now is None and (finding.knob, finding.where) not in originals
    if not never or finding.knob != "persist" or not finding.where:
        return finding
    reason = f"nearmetal.service sets it at each boot; the next run of tune writes {finding.where}"
    return finding._replace(status="advice", reason=reason)


def _unplanned(stored: Optional[Stored]) -> str:
    if stored is None:
        return "nothing is stored of what is wanted: only restore can take it back"
    if stored.damage:
        return stored.damage
    return f"nearmetal {VERSION} doesn't know it, {stored.version} did: only restore can take it back"


def _entry(finding: Finding, originals: Dict[Any, Entry]) -> Optional[Entry]:
    """The entry of the finding's place; without a place, as for a sysctl, that of the knob if it has only one."""
    of_knob = [entry for (knob, _where), entry in originals.items() if knob == finding.knob]
    only = of_knob[0] if len(of_knob) == 1 and not finding.where else None
    return originals.get((finding.knob, finding.where), only)


def _knob(finding: Finding, originals: Dict[Any, Entry]) -> Dict[str, Any]:
    entry = _entry(finding, originals)
    return {
        "knob": finding.knob,
        "where": finding.where,
        "status": finding.status,
        "now": finding.now,
        "wanted": finding.wanted,
        "before_nearmetal": entry.original if entry else None,
        "changed_by_us": entry is not None,
        "reason": finding.reason,
    }


def planned_at(host: WritableHost) -> Optional[float]:
    """When the unit last planned since the boot; None: it hasn't."""
    try:
        return os.stat(host.real(store.FINGERPRINT)).st_mtime
    except OSError:
        return None


def _planned(host: WritableHost) -> Optional[str]:
    at = planned_at(host)
    return None if at is None else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def as_wanted(state: Dict[str, Any]) -> bool:
    """Whether all that was wanted could be planned and done, holds, and waits for no boot."""
    broken = any(concern["error"] for concern in state["concerns"])
    return not (broken or state["failed"] or state["damaged"] or state["drift"] or state["needs_reboot"])


def render(state: Dict[str, Any], color: bool = False) -> str:
    """At most 80 columns; what is long is cut, never wrapped."""
    lines = [_title(state), _summary(state), ""]
    lines += [line for sentence in state["damaged"] for line in (*_folded("Damaged ", sentence), "")]
    lines += [line for failure in state["failed"] for line in (*_failed(failure), "")]
    for concern in state["concerns"]:
        lines += [*_drawn(concern, color), ""]
    lines += list(_footer(state))
    return "\n".join(line.rstrip() for line in lines).rstrip()


def _title(state: Dict[str, Any]) -> str:
    kind = state["platform"] or {}
    parts = [f"nearmetal {state['nearmetal']}", state["host"], kind.get("instance_type") or kind.get("host_class")]
    parts += [f"kernel {kind['kernel']}" if kind.get("kernel") else ""]
    return _cut(" · ".join(str(part) for part in parts if part), WIDTH)


def _summary(state: Dict[str, Any]) -> str:
    concerns = state["concerns"]
    if state["damaged"]:
        return "A file of nearmetal can't be read."
    if state["failed"]:
        names = ", ".join(failure["concern"] for failure in state["failed"])
        return _cut(f"Failed in its last run: {names}", WIDTH)
    if not concerns:
        return "Nothing is tuned on this host, and nothing is left to take back."
    broken = [concern["name"] for concern in concerns if concern["error"]]
    if broken:
        return _cut(f"Can't be planned: {', '.join(broken)}", WIDTH)
    if state["drift"]:
        return _cut(f"Not as wanted any more: {', '.join(state['drift'])}", WIDTH)
    if state["needs_reboot"]:
        words = status_words("needs_reboot", len(state["needs_reboot"]))
        return _cut(f"{', '.join(state['needs_reboot'])} {words}", WIDTH)
    return f"Everything is as wanted ({len(concerns)} concern{'s' if len(concerns) > 1 else ''})."


def _failed(failure: Dict[str, Any]) -> Iterator[str]:
    """What failed when, and the two ways on."""
    name = failure["concern"]
    instead = "" if name == UNIT else f", or give it up: nearmetal restore {name}"
    when = f"{_time(failure['at'])} ({failure['run']})"
    yield from _folded("Failed  ", f"{name} at {when}: {failure['error']}. Fix that and run it again{instead}")


def _drawn(concern: Dict[str, Any], color: bool) -> Iterator[str]:
    at = f" · {_time(concern['at'])}" if concern["run"] else ""
    by = _cut(concern["run"] or "by an earlier run", WIDTH - 21 - len(at)) + at
    yield f"{_cut(concern['name'], 20):<20} {_cut(by, WIDTH - 21):>{WIDTH - 21}}"
    if concern["error"]:
        yield from _folded(f"  {_painted('failed', '31;1', STATUS_WIDTH, color)}", concern["error"])
    for knob in concern["knobs"]:
        paint = _COLORS.get(knob["status"], "")
        head = f"  {_painted(status_words(knob['status']), paint, STATUS_WIDTH, color)}"
        value = _value(knob)
        if knob["status"] not in ("ok", "would_change"):
            yield from _folded(head, f"{knob['knob']}: {knob['reason']}")
        elif len(value) <= WIDTH - STATUS_WIDTH - 2:
            yield head + _plain(value)
        else:
            yield from _folded(head, value)


def _value(knob: Dict[str, Any]) -> str:
    place = knob["where"] if knob["where"] not in (knob["now"], knob["wanted"]) else ""
    name = f"{knob['knob']} {place}".strip()
    now, wanted, before = (in_words(knob[key], "absent", VALUE_WIDTH) for key in ("now", "wanted", "before_nearmetal"))
    text = f"{name:<12} {now}"
    if knob["status"] == "would_change":
        text += f", wanted {wanted}"
    if knob["changed_by_us"] and knob["before_nearmetal"] is not None:
        text += f"   (before nearmetal: {before})"
    return text


def _footer(state: Dict[str, Any]) -> Iterator[str]:
    unit = state["unit"]
    yield from _folded("Unit    ", _unit(unit))
    if unit.get("agent") is not None and unit.get("enabled") and not unit.get("switched_off"):
        # Unfolded, to be copied: the folder isn't there until somebody needs it.
        yield f"Off     mkdir -p {os.path.dirname(DISABLED)} && touch {DISABLED}"
    if state["others"]:
        yield from _folded("Others  ", f"{', '.join(state['others'])} run on this host; what they own is refused above")
    if state["drift"]:
        yield "Again   nearmetal reapply"
    tuned = [concern["name"] for concern in state["concerns"] if concern["run"] or concern["error"]]
    if tuned:
        yield from _folded("Undo    ", f"nearmetal restore {tuned[0]}, or all: nearmetal restore")
    if unit.get("agent") is None and (tuned or state["failed"]):
        yield "Command nearmetal isn't installed here, because the unit is absent: in its place run"
        yield f"        python3 -m {MODULE}"


def _unit(unit: Dict[str, Any]) -> str:
    if unit.get("agent") is None or not unit.get("enabled"):
        return "absent: nothing is left to plan at boot"
    if unit.get("switched_off"):
        return f"switched off by {unit['switched_off']}"
    planned = f"planned {_time(unit['planned'])}" if unit["planned"] else "hasn't planned since boot"
    return f"{planned}; log: journalctl -u nearmetal"


def _time(text: Optional[str]) -> str:
    return f"{text[:10]} {text[11:16]} UTC" if text else "unknown"


def _painted(word: str, paint: str, width: int, color: bool) -> str:
    return f"\033[{paint}m{word:<{width}}\033[0m" if color and paint else f"{word:<{width}}"


def _plain(text: str) -> str:
    """The text without what would move the cursor; hosts and files may hold anything."""
    return "".join(char if char.isprintable() else "?" for char in text)


def _cut(text: str, width: int) -> str:
    return clipped(_plain(text), width)


def _folded(head: str, text: str) -> Iterator[str]:
    """The text in lines of at most 80 columns, the later ones below the first word of the text."""
    indent = STATUS_WIDTH + 2 if head.startswith("  ") else 8
    for line in folded(_plain(text), WIDTH - indent) or [""]:
        yield head + line
        head = " " * indent
