# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tasks that change a host: those of concerns, `restore` and `confirm`. PRIVATE to the collection."""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import Any, Callable, Dict, List, Mapping

from .._concerns.registry import CONCERNS
from .._engine.lease import confirmation
from .._engine.planning import Request, Restore
from .._engine.requests import restore_requests, wanted_or_base
from .._engine.result import contract, described
from .._engine.run import PLAIN, Ask, Conditions, Run, plan_run, run
from .._engine.session import Known, Origin, Outcome
from .._error import NearmetalError
from .._facts.facts import observe
from .._facts.json_data import json_data
from .._host.host import WritableHost
from .._plan import Wanted
from .._planning.concern import Concern
from .._planning.options import COMMON, Spec
from .task import Task

STATE: Spec = {
    "state": {"type": "str", "choices": ["present", "restored"], "default": "present"},
    "strict": {"type": "bool", "default": False},
}
_ONLY_LOOK = ("blkfront_check",)
Execute = Callable[[WritableHost, Ask, Conditions], Run]  # `run` or `plan_run`


def answer(
    execute: Execute,
    host: WritableHost,
    ask: Ask,
    conditions: Conditions = PLAIN,
    named: Mapping[str, Any] = MappingProxyType({}),
    show_commands: bool = False,
) -> Dict[str, Any]:
    """`execute` with what is asked; `failed` is in it when something went wrong.

    `named` is in it as it is. `show_commands`, for what is planned, adds the shell commands that would do the same.
    """
    try:
        done = execute(host, ask, conditions)
    except NearmetalError as error:
        return {"failed": True, "msg": str(error), **named, "mistake": str(error) == _mistake(ask)}
    result = {**described(done.facts, done.outcomes), **named}
    if done.confirm_within:
        result["confirm_within"] = done.confirm_within
    if show_commands:
        from .._engine.by_hand import script

        result["commands"] = script(host, done.outcomes)
    if result["errors"]:
        result["failed"] = True
    return result


def _mistake(ask: Ask) -> str:
    """What is wrong with options on any host; else empty."""
    try:
        ask({})
    except NearmetalError as error:
        return str(error)
    return ""


def task_of(module: str) -> Task:
    """The task of the concern that is named like the module."""
    concern = CONCERNS[module]
    if concern.name in _ONLY_LOOK:
        look = partial(_look, concern)
        # What the action group sets, for all its modules.
        return Task({**COMMON, "strict": STATE["strict"], **concern.options}, look, look)
    options = {**STATE, **COMMON, **concern.options}
    return Task(options, partial(_reach_state, concern, run), partial(_reach_state, concern, plan_run))


def _reach_state(concern: Concern, execute: Execute, host: WritableHost, options: Mapping[str, Any]) -> Dict[str, Any]:
    options = dict(options)
    strict, state = options.pop("strict"), options.pop("state")

    def ask(_known: Known) -> List[Request]:
        return [wanted_or_base(concern, options) if state == "present" else Restore(concern.name, concern)]

    return answer(execute, host, ask, Conditions(origin=Origin(f"module {concern.name}"), strict=strict))


def _look(concern: Concern, host: WritableHost, options: Mapping[str, Any]) -> Dict[str, Any]:
    """What the concern says of the host. It reads no journal, so it needs no root."""
    facts = observe(host, ("platform", *concern.domains))
    plan = concern.plan(facts, Wanted(options))
    result = contract([Outcome(concern.name, plan)])
    findings = [finding for finding in plan.findings if finding.status != "ok"] or list(plan.findings)
    result["msg"] = f"{concern.name}: {findings[0].reason}"
    result["platform"] = json_data(facts.platform)
    return result


def _restore(execute: Execute, host: WritableHost, options: Mapping[str, Any]) -> Dict[str, Any]:
    names = options.get("concerns")
    conditions = Conditions(restores_all=names is None)
    return answer(execute, host, lambda known: restore_requests(names, known), conditions)


def _confirm(confirm: Callable[[WritableHost], bool], host: WritableHost, _options: object) -> Dict[str, Any]:
    armed = confirm(host)
    return {"changed": armed, "msg": "confirmed" if armed else "nothing waits to be confirmed"}


TASKS = {
    "confirm": Task({}, partial(_confirm, confirmation.confirm), partial(_confirm, confirmation.can_confirm)),
    "restore": Task(
        {"concerns": {"type": "list", "elements": "str"}}, partial(_restore, run), partial(_restore, plan_run)
    ),
}
