# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run leaves alone: knobs that are excluded, and knobs that somebody waived. Pure. PRIVATE to the collection.

An excluded knob counts as an option left out, so what an earlier run set is taken back.
A waived knob is left as it is, with a reason and a last day, and is reported.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Container, Dict, List, Mapping, Sequence, Set, Tuple

from .._error import NearmetalError
from .._plan import Finding, Plan, Wanted
from .._words import choices, shown
from .concern import Concern
from .knob import without
from .options import each_of, validate

REFERENCE = "docs/workloads.md"
LONGEST = 200  # characters of a reason
UNWANTED = ", so tune_only leaves it as it is"  # how the finding ends that a run is limited to what nobody wants
EXPIRED = "its waiver expired on "  # and the day: how the finding of such a waiver begins

_WAIVER: Mapping[str, Mapping[str, Any]] = {
    "knob": {"type": "str", "required": True},
    "reason": {"type": "str", "required": True, "lines": True},
    "expires": {"type": "str", "required": True},
}
# In the stored options of each concern, where `knob` is the name without the concern.
OPTIONS: Mapping[str, Mapping[str, Any]] = {"waivers": {"type": "list", "elements": "dict", "options": _WAIVER}}

Concerns = Mapping[str, Concern]


def excluded_options(given: Sequence[Any], concerns: Concerns) -> Dict[str, Set[str]]:
    """Concern → the options, knobs and checks to leave out.

    Raises NearmetalError for a name that isn't `concern.knob`.
    """
    excluded: Dict[str, Set[str]] = {}

    def exclude(where: str, name: Any) -> None:
        concern, knob = _split(where, name, concerns)
        _require_knob(where, concern, knob, _selectable(concerns[concern]))
        excluded.setdefault(concern, set()).add(knob)

    each_of("tune_exclude", given, exclude)
    return excluded


def only_options(given: Sequence[Any], concerns: Concerns) -> Dict[str, Set[str]]:
    """Concern → the options and knobs to which a run is limited. Raises NearmetalError for a name that sets nothing."""
    chosen: Dict[str, Set[str]] = {}

    def choose(where: str, name: Any) -> None:
        concern, knob = (name, "") if name in concerns else _split(where, name, concerns, "a concern or ")
        options = managed(concerns[concern])
        # A knob without an option of its own comes with another's.
        setting = {
            knob if declared.spec is not None else declared.base
            for declared in concerns[concern].knobs
            if knob in declared.names and not {declared.base, declared.within}.isdisjoint(options)
        }
        if knob and not setting:
            raise NearmetalError(f"{where}: {concern} has no option for {shown(knob)}; it has {choices(options, knob)}")
        chosen.setdefault(concern, set()).update(setting or options)

    each_of("tune_only", given, choose)
    return chosen


def waivers_by_concern(
    given: Sequence[Any], concerns: Concerns, left_out: Mapping[str, Set[str]]
) -> Dict[str, List[Any]]:
    """Concern → its waivers in the form of OPTIONS. Raises NearmetalError for an incomplete or wrong waiver."""
    waivers: Dict[str, List[Any]] = {}

    def waive(where: str, raw: Any) -> None:
        waiver = validate(where, _WAIVER, raw)
        concern, knob = _split(f"{where}.knob", waiver["knob"], concerns)
        _require_knob(f"{where}.knob", concern, knob, knobs_of(concerns[concern]))
        if knob in left_out.get(concern, ()):
            raise NearmetalError(
                f"{concern}.{knob} is in tune_exclude, which takes it back, and in tune_waivers, which leaves it as it"
                " is: give one of them"
            )
        if any(other["knob"] == knob for other in waivers.get(concern, ())):
            raise NearmetalError(f"{where}: {concern}.{knob} is waived twice; give one reason and one last day")
        reason = " ".join(waiver["reason"].split())
        if not 0 < len(reason) <= LONGEST or not reason.isprintable():
            raise NearmetalError(f"{where}.reason says why in 1 to {LONGEST} characters, for readers of the report")
        require_day(f"{where}.expires", waiver["expires"])
        waivers.setdefault(concern, []).append({"knob": knob, "reason": reason, "expires": waiver["expires"]})

    each_of("tune_waivers", given, waive)
    return waivers


def is_day(text: str) -> bool:
    """Whether the text is a day of the calendar, such as 2027-01-31."""
    try:
        return time.strftime("%Y-%m-%d", time.strptime(text, "%Y-%m-%d")) == text
    except ValueError:
        return False


def require_day(name: str, text: str) -> None:
    """Raise NearmetalError unless the text is a day."""
    if not is_day(text):
        raise NearmetalError(f"{name} must be the last day of the waiver, such as 2027-01-31, not {shown(text)}")


def plan_waived(concern: Concern, wanted: Wanted, plan_of: Callable[[Wanted], Plan], today: str) -> Plan:
    """The concern's plan, in which nothing is done for a knob whose waiver holds on the day `today` (YYYY-MM-DD)."""
    plan = plan_of(wanted)
    waivers = {waiver["knob"]: waiver for waiver in wanted.get("waivers") or ()}
    if not waivers:
        return plan
    for knob, waiver in waivers.items():
        require_day(f"{concern.name}: the waiver of {knob}", waiver["expires"])
    holding = {knob: waivers[knob] for knob in waived_knobs(wanted, today)}
    advice = [finding for waiver in waivers.values() for finding in _advice(concern, waiver, plan, today)]
    if not holding:
        return plan._replace(findings=(*plan.findings, *advice))
    other_plan = plan_of(wanted._replace(options=without(concern.knobs, wanted.options, holding.keys())))
    actions = tuple(action for action in other_plan.actions if action.knob not in holding)
    waived = tuple(
        _waived_finding(finding, holding[finding.knob]) for finding in plan.findings if finding.knob in holding
    )
    findings = tuple(finding for finding in other_plan.findings if finding.knob not in holding)
    return plan._replace(actions=actions, findings=(*waived, *findings, *advice), replan=other_plan.replan)


def waived_knobs(wanted: Wanted, today: str) -> List[str]:
    """The knobs whose waiver holds on that day."""
    return [waiver["knob"] for waiver in wanted.get("waivers") or () if waiver["expires"] >= today]


def _waived_finding(finding: Finding, waiver: Mapping[str, str]) -> Finding:
    if finding.status == "ok":
        return finding
    reason = "until {expires}: {reason}; otherwise {0}: {1}".format(finding.status, finding.reason, **waiver)
    return finding._replace(status="waived", reason=reason)


def _advice(concern: Concern, waiver: Mapping[str, str], plan: Plan, today: str) -> Tuple[Finding, ...]:
    """The finding for a waiver that has expired, or that an earlier version stored for a knob that isn't there."""
    if waiver["knob"] not in knobs_of(concern):
        reason = f"a waiver names {concern.name}.{waiver['knob']}, but {concern.name} has no such knob: correct it"
        return (Finding(concern.name, waiver["knob"], "advice", reason, reference=REFERENCE),)
    reason = _expired(waiver, today, any(finding.knob == waiver["knob"] for finding in plan.findings))
    return (Finding(concern.name, waiver["knob"], "advice", reason, reference=REFERENCE),) if reason else ()


def flaws_of_idle(waivers: Mapping[str, Sequence[Mapping[str, str]]], planned: Container[str]) -> Dict[str, str]:
    """concern.knob → that its waiver has expired, where the run plans nothing of the concern."""
    today = time.strftime("%Y-%m-%d", time.gmtime())
    flaws = {
        f"{name}.{waiver['knob']}": _expired(waiver, today, managed_again=False)
        for name in waivers
        if name not in planned
        for waiver in waivers[name]
    }
    return {name: flaw for name, flaw in flaws.items() if flaw}


def _expired(waiver: Mapping[str, str], today: str, managed_again: bool) -> str:
    again = "so the knob is managed again" if managed_again else "and nothing of this run sets the knob"
    template = EXPIRED + "{expires} ({reason}), {again}: renew or remove the waiver"
    return template.format(again=again, **waiver) if waiver["expires"] < today else ""


def _require_knob(where: str, concern: str, knob: str, knobs: Sequence[str]) -> None:
    if knob not in knobs:
        raise NearmetalError(f"{where}: {concern} has no knob {shown(knob)}; it has {choices(knobs, knob)}")


def _split(where: str, name: Any, concerns: Concerns, either: str = "") -> Tuple[str, str]:
    concern, dot, knob = name.partition(".") if isinstance(name, str) else ("", "", "")
    having = [other for other in sorted(concerns) if (knob or concern) in _selectable(concerns[other])]
    if having and concern not in concerns:
        meant = " or ".join(f"{other}.{knob or concern}" for other in having)
        raise NearmetalError(f"{where} must be {either}concern.knob, not {shown(name)}; is {meant} meant?")
    if not (concern and dot and knob):
        sentence = f"{where} must be {either}concern.knob, such as cpu_power.idle, not {shown(name)}"
        if concern in concerns:
            raise NearmetalError(f"{sentence}; its knobs are {choices(_selectable(concerns[concern]))}")
        raise NearmetalError(f"{sentence}; concerns are {choices(sorted(concerns), concern)}")
    if concern not in concerns:
        raise NearmetalError(
            f"{where}: concern {shown(concern)} is unknown; there are {choices(sorted(concerns), concern)}"
        )
    return concern, knob


def knobs_of(concern: Concern) -> List[str]:
    """Everything that a finding of the concern may be about, on any host."""
    manner = [option for option in ("method", "persist") if option in concern.options]
    return [*managed(concern), *concern.checks, *manner]


def _selectable(concern: Concern) -> List[str]:
    """What can be left out: options, knobs that a suboption sets, and checks, which change nothing."""
    knobs = (knob.name for knob in concern.knobs if knob.spec is not None or not knob.lever)
    return list(dict.fromkeys((*managed(concern), *knobs)))


def managed(concern: Concern) -> List[str]:
    """The options that can be managed or left out; the other options say how."""
    return [option for option, rule in concern.options.items() if "default" not in rule]
