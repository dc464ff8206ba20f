# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The result contract of every state module: plain data from outcomes. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence

from .._facts.facts import Facts, project
from .._facts.json_data import json_data
from .._facts.unit import AGENT, IDENTITY, LINK
from .._levers.registry import lever_of
from .._plan import Action, Finding, Value
from .._planning.unit import NAME as UNIT
from .._words import clipped, in_words, sentence, status_words
from .session import Outcome

SHORT = 32  # characters of a value in msg, which is one line
QUEUES = "network_irq"  # the concern whose result has a map of queues
_DOUBT = "; only the write shows whether the driver takes it"
LONGEST_MSG = 2000  # characters; actions and findings have all of it


def described(facts: Facts, outcomes: Sequence[Outcome]) -> Dict[str, Any]:
    """The result of a run: its contract, the platform, and where it plans interrupts, what a picture shows of them."""
    result = {**contract(outcomes), "platform": json_data(facts.platform)}
    if any(outcome.name == QUEUES for outcome in outcomes):
        from .._facts.layout import layout, queue_map  # late: the unit draws nothing

        actions = [action for outcome in outcomes if not outcome.error for action in outcome.plan.actions]
        result["queue_map"] = queue_map(facts, project(facts, actions))
        result["topology"] = layout(facts)
    return result


def contract(outcomes: Sequence[Outcome]) -> Dict[str, Any]:
    """`changed`, `msg`, `diff`, `actions`, `findings`, `errors`, `reboot_required` and `reboot_reasons`.

    In check mode (nothing done, no error) `changed` says what an apply would do. What nearmetal only notes for itself
    is an action, and no change of the host.
    """
    actions = [action for outcome in outcomes if not outcome.error for action in (*_rows(outcome), *outcome.memory)]
    findings = [finding for outcome in outcomes for finding in _findings(outcome)]
    failed = [outcome.name for outcome in outcomes if outcome.error]
    failed_first = sorted(outcomes, key=lambda outcome: not outcome.error)
    reasons = [
        f"{finding.concern}.{finding.knob}: {finding.reason}"
        for finding in findings
        if finding.status == "needs_reboot" and finding.concern not in failed
    ]
    return {
        "changed": any(_rows(outcome) for outcome in outcomes if not outcome.error),
        "msg": clipped("; ".join(sentence(_line(outcome)) for outcome in failed_first), LONGEST_MSG) or "nothing to do",
        "diff": {
            "before": _tree(actions, "before"),
            "after": _tree(actions, "after"),
        },
        "actions": [action.as_dict() for action in actions],
        "findings": [finding.as_dict() for finding in findings],
        "errors": {outcome.name: sentence(outcome.error) for outcome in outcomes if outcome.error},
        "reboot_required": bool(reasons),
        "reboot_reasons": reasons,
    }


def _rows(outcome: Outcome) -> Sequence[Action]:
    """The actions as rows of the result; those on the unit's files are one."""
    if outcome.name != UNIT or not outcome.plan.actions:
        return outcome.plan.actions
    before, after = (
        {_unit_path(action): _unit_word(getattr(action, side), word) for action in outcome.plan.actions}
        for side, word in (("before", "written earlier"), ("after", "written"))
    )
    return (outcome.plan.actions[0]._replace(knob="agent", what="unit.files", where="", before=before, after=after),)


def _unit_path(action: Action) -> str:
    return {"unit.agent": AGENT, "unit.enabled": LINK}.get(action.what, action.where)


def _unit_word(value: Value, word: str) -> Value:
    """A version and its digest as the version, and the text of a file as the word that it is there."""
    if isinstance(value, str) and IDENTITY.fullmatch(value):
        return value.partition(" ")[0]
    return None if value is None else word


def _findings(outcome: Outcome) -> List[Finding]:
    planned = () if outcome.done else outcome.plan.actions
    doubtful = {(action.knob, action.where) for action in planned if lever_of(action.what).declining}
    findings = []
    for finding in outcome.plan.findings:
        status, reason = finding.status, finding.reason
        if status == "would_change":
            status = "changed" if outcome.done else status
            reason += _DOUBT if (finding.knob, finding.where) in doubtful else ""
        findings.append(finding._replace(status=status, reason=sentence(reason)))
    return findings


def _tree(actions: Sequence[Action], side: str) -> Dict[str, Any]:
    tree: Dict[str, Any] = {}
    for action in actions:
        branch = tree
        *path, leaf = action.what.split(".") + ([action.where] if action.where else [])
        for name in path:
            branch = branch.setdefault(name, {})
        branch[leaf] = getattr(action, side)
    return tree


def _line(outcome: Outcome) -> str:
    if outcome.error:
        return f"{outcome.name}: {outcome.error}"
    if not outcome.plan.actions:
        return f"{outcome.name}: {_unchanged(outcome)}"
    if outcome.name == UNIT:
        return f"{outcome.name}: {'' if outcome.done else 'would be '}{_unit_change(outcome.plan.actions)}"
    parts = list(dict.fromkeys(_change(action) for action in outcome.plan.actions))
    if any(finding.status == "needs_reboot" for finding in outcome.plan.findings):
        parts.append(status_words("needs_reboot"))
    else:
        parts.append("no reboot")
    done = "" if outcome.done else f"{status_words('would_change')} "
    return f"{outcome.name}: {done}{', '.join(parts)}"


_NOT_AS_WANTED = ("refused", "waived", "unchangeable", "unknown")


def _unchanged(outcome: Outcome) -> str:
    """Why there is nothing to do for a concern."""
    findings = outcome.plan.findings
    lacking = sum(finding.status == "not_applicable" for finding in findings)
    good = any(finding.status == "ok" for finding in findings)
    for finding in sorted(findings, key=lambda finding: finding.status != "refused"):
        if finding.status in _NOT_AS_WANTED or (finding.status == "not_applicable" and not good):
            return f"{finding.status.replace('_', ' ')}: {finding.reason}"
    waiting = [finding for finding in findings if finding.status == "needs_reboot"]
    if waiting:
        return status_words("needs_reboot", len(waiting))
    if any(finding.status != "advice" for finding in findings):
        return f"as wanted ({lacking} {status_words('not_applicable', lacking)})" if lacking else "as wanted"
    return findings[0].reason if findings else "nothing to do"


def _unit_change(actions: Sequence[Action]) -> str:
    agent = [action for action in actions if action.what == "unit.agent"]
    if agent and agent[0].before is None:
        return "installed"
    if any(action.after is not None for action in actions):
        return "renewed"
    return "removed" if agent else "removed (the agent was already gone)"


def _change(action: Action) -> str:
    if action.what == "files" and action.knob != "persist":
        return f"{action.where} {'removed' if action.after is None else 'written'}"
    if action.what == "files":
        return "no longer persisted" if action.after is None else "persisted"
    place = f"{action.where} " if action.where else ""
    return f"{place}{in_words(action.before, 'absent', SHORT)} → {in_words(action.after, 'absent', SHORT)}"
