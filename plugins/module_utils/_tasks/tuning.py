# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run of `tune`, by its options; `prove` compares what some of them ask for. PRIVATE to the collection."""

from __future__ import annotations

from functools import partial
from typing import Any, Dict, Mapping, NamedTuple

from .._engine.requests import tune_requests
from .._engine.run import Ask, Conditions, Run, plan_run, run
from .._engine.session import BakeSession, Origin, Session
from .._error import NearmetalError, OfHost
from .._facts.facts import UNOBSERVED, observe
from .._host.host import WritableHost
from .._mistakes import Mistakes
from .._planning.options import COMMON, Spec
from .._planning.waivers import OPTIONS as WAIVERS
from .._requests.choice import Chosen, choose
from .changing import Execute, answer
from .task import Task

WANTED: Spec = {
    "workload": {"type": "list", "elements": "str"},
    "program": {"type": "list", "elements": "str"},
    "workload_auto": {"type": "str", "choices": ["advise", "apply"], "default": "advise"},
    "workload_concerns": {"type": "dict", "default": {}},
    "workload_concerns_of": {"type": "str", "default": ""},
    "concerns": {"type": "dict", "default": {}},
    "exclude": {"type": "list", "elements": "str", "default": []},
    "waivers": {**WAIVERS["waivers"], "default": []},
    "prune": {"type": "bool", "default": False},
    "strict": {"type": "bool", "default": False},
    **COMMON,
}
OPTIONS: Spec = {
    **WANTED,
    "only": {"type": "list", "elements": "str", "default": []},
    "on_failure": {"type": "str", "choices": ["keep", "rollback"], "default": "keep"},
    "metrics_directory": {"type": "str"},
    "bake": {"type": "bool", "default": False},
    "confirm_within": {"type": "int", "default": 0},
    "show": {"type": "str", "choices": ["findings", "commands"], "default": "findings"},
}


class TuneRequest(NamedTuple):
    """The workloads that were chosen, and how a run asks for them."""

    chosen: Chosen
    ask: Ask


def tune_request(host: WritableHost, options: Mapping[str, Any]) -> TuneRequest:
    """What these checked options of `tune` ask of the host. Raises NearmetalError for options that make no sense."""
    common = {option: options[option] for option in COMMON if options.get(option) is not None}
    arguments: Dict[str, Any] = {option: options[option] for option in ("prune", "exclude", "waivers")}
    workload_concerns = options["workload_concerns"]
    named, concerns_of = options.get("workload"), options["workload_concerns_of"]
    program = options.get("program")
    auto, mistakes, chosen = options["workload_auto"], Mistakes(), Chosen(("base",), "")
    with mistakes:
        chosen = choose(host, named, auto, workload_concerns, concerns_of, program=program, **arguments)
    arguments.update(concerns=options["concerns"], workload_concerns=workload_concerns, common=common)
    # prove has no such options
    arguments.update(only=options.get("only", ()), metrics=options.get("metrics_directory"))
    if mistakes.found:
        mistakes.of(partial(tune_requests, chosen.names, **arguments))
    mistakes.require_none()
    arguments.update(workloads=chosen.names, findings=chosen.findings, programs=chosen.programs)
    arguments.update(claims=chosen.asking.claims, asking=chosen.asking.programs)
    return TuneRequest(chosen, lambda known: tune_requests(on_host=known, **arguments))


def forecast(host: WritableHost, options: Mapping[str, Any], drawn: bool = True) -> Dict[str, Any]:
    """What `tune` would do with these options, checked: the result in check mode.

    `drawn` if a report has a picture of the host.
    """
    return _answer(plan_run, host, options, drawn)


def tune(host: WritableHost, options: Mapping[str, Any], drawn: bool = True) -> Dict[str, Any]:
    """The result of a run with these options of `tune`, checked; `drawn` as in `forecast`."""
    if options["show"] == "commands":
        sentence = "show: commands changes nothing, so it needs check mode: run with --check"
        return {"failed": True, "msg": sentence, "workload": options.get("workload"), "mistake": True}
    return _answer(run, host, options, drawn)


def _answer(execute: Execute, host: WritableHost, options: Mapping[str, Any], drawn: bool) -> Dict[str, Any]:
    try:
        chosen, ask = tune_request(host, options)
    except NearmetalError as error:
        mistake = not isinstance(error, OfHost)
        return {"failed": True, "msg": str(error), "workload": options.get("workload"), "mistake": mistake}
    conditions = Conditions(
        origin=Origin(chosen.run),
        kind=BakeSession if options["bake"] else Session,
        strict=options["strict"],
        roll_back_all=options["on_failure"] == "rollback",
        confirm_within=options["confirm_within"],
    )
    show_commands = options["show"] == "commands"
    execute = _with_disks(execute) if drawn else execute
    return answer(execute, host, ask, conditions, named={"workload": chosen.names}, show_commands=show_commands)


def _with_disks(execute: Execute) -> Execute:
    """Like `execute`, with the host's disks, which the picture shows beside its NICs; few workloads plan them."""

    def execute_with_disks(host: WritableHost, ask: Ask, conditions: Conditions) -> Run:
        done = execute(host, ask, conditions)
        if done.facts.network is UNOBSERVED or done.facts.block is not UNOBSERVED:
            return done
        return done._replace(facts=done.facts._replace(block=observe(host, ("block",)).block))

    return execute_with_disks


TASKS = {"tune": Task(OPTIONS, tune, forecast)}
