# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The workloads and programs of a run: those that it names, or with `auto` those of the host. PRIVATE."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .._error import NearmetalError
from .._facts.facts import observe
from .._host.host import WritableHost
from .._memory.stored import CHOICE
from .._plan import Finding, Plan, Wanted
from .._planning.programs import SIGNS
from .._planning.waivers import excluded_options, plan_waived, waived_knobs, waivers_by_concern
from .asking import Asking, ask
from .combined import require_known
from .recognized import KNOB, PROGRAM, WORKLOAD, recognized_before, with_choice

if TYPE_CHECKING:
    from .._facts.running import Program, RunningFacts

AUTO, APPLY, ADVISE = "auto", "apply", "advise"
_BASE = "base"
_MOST_PORTS = 4  # of a program, in a sentence


class Chosen(NamedTuple):
    """The workloads of a run, the name under which the run is stored, and the findings about the choice.

    `programs` led to the choice and are kept on the host; None keeps those of an earlier run. `asking` is what the
    host's programs ask for.
    """

    names: Tuple[str, ...]
    run: str
    findings: Tuple[Finding, ...] = ()
    programs: Optional[Tuple[str, ...]] = None
    asking: Asking = Asking()


def choose(
    host: WritableHost,
    named: Optional[Sequence[str]],
    auto: str,
    workload_concerns: Mapping[str, Any],
    concerns_of: str = "",
    prune: bool = False,
    exclude: Sequence[Any] = (),
    waivers: Sequence[Any] = (),
    program: Optional[Sequence[str]] = None,
) -> Chosen:
    """The workloads and programs of a run, by its options `workload` and `program`; None when they aren't given.

    `auto` recognizes both by what runs. It only advises them, and applies `base`, unless the option `workload_auto` is
    `apply`. Then it also applies what an earlier run recognized, because a program may be down for a moment, unless
    `prune` is set. Raises NearmetalError for names that make no sense together.
    """
    concerns = with_choice() if exclude or waivers else {}
    left_out = excluded_options(exclude, concerns)
    waived = Wanted({"waivers": waivers_by_concern(waivers, concerns, left_out).get(CHOICE, [])})
    today = time.strftime("%Y-%m-%d", time.gmtime())
    held, gone = waived_knobs(waived, today), left_out.get(CHOICE, set())
    if named is None:
        chosen = Chosen((), "tune", programs=() if prune else None)
    elif AUTO not in named:
        chosen = _named_workloads(named, workload_concerns, concerns_of)
    else:
        _require_auto_alone(named, workload_concerns)
        chosen = (
            Chosen((_BASE,), f"tune, auto: {_named([_BASE])}", programs=())
            if KNOB in gone
            else _recognized(host, auto == APPLY, prune, waived=KNOB in held)
        )
    asking = Asking() if PROGRAM.name in gone else ask(host, program, auto == APPLY, prune, held=PROGRAM.name in held)
    run = f"{chosen.run}, {asking.run}" if asking.run else chosen.run
    chosen = chosen._replace(asking=asking, findings=(*chosen.findings, *asking.findings), run=run)
    if not waived.options["waivers"] or not chosen.findings:
        return chosen
    plan = plan_waived(concerns[CHOICE], waived, lambda _wanted: Plan(findings=chosen.findings), today)
    return chosen._replace(findings=plan.findings)


def _named_workloads(named: Sequence[str], workload_concerns: Mapping[str, Any], concerns_of: str) -> Chosen:
    require_known(named)
    if workload_concerns and (len(named) > 1 or (concerns_of and concerns_of != named[0])):
        whence = " (the default of tune_workload)" if list(named) == [_BASE] else ""
        raise NearmetalError(
            f"{_named(named)} {'are' if len(named) > 1 else 'is'} named{whence}, but workload_concerns spells out"
            f" {concerns_of or 'another'} and takes precedence: run the playbook nearmetal.ec2.tune for"
            f" {', '.join(named)}" + (f", or set tune_workload: {concerns_of}" if concerns_of else "")
        )
    return Chosen(tuple(named), f"tune, {_named(named)}", programs=())


def _require_auto_alone(named: Sequence[str], workload_concerns: Mapping[str, Any]) -> None:
    fixed = [name for name in named if name != AUTO]
    if fixed:
        require_known(fixed)
        raise NearmetalError(
            "workload auto can't be combined with other workloads, because it recognizes them by what runs on the"
            f" host: leave out auto, or leave out {' and '.join(fixed)}"
        )
    if workload_concerns:
        raise NearmetalError(
            "workload auto recognizes workloads by what runs on the host, but workload_concerns spells one out:"
            " use one of the two"
        )


def _recognized(host: WritableHost, applies: bool, prune: bool, waived: bool) -> Chosen:
    """The workloads of the programs that run; while a waiver `held` the choice, those of earlier runs alone."""
    running = observe(host, ("running",)).running
    recognized = programs_by_workload(running)
    earlier = recognized_before(host) if applies and host.is_root() and (waived or not prune) else ()
    names_now = [program.name for programs in recognized.values() for program in programs]
    present = [] if waived or not applies else names_now
    programs = tuple(name for name in SIGNS if name in earlier or name in present)
    applied = tuple(dict.fromkeys(SIGNS[name].workload for name in programs))
    findings = [_running_workload(workload, recognized, workload in applied) for workload in recognized]
    findings += [_stopped_workload(workload, programs) for workload in applied if workload not in recognized]
    if not findings:
        findings = [_none_recognized(running.processes)]
    names = applied or (_BASE,)
    keep = programs if applies and not waived else None
    return Chosen(names, f"tune, auto: {_named(names)}", tuple(findings), keep)


def programs_by_workload(running: RunningFacts) -> Dict[str, List[Program]]:
    """Workload → the programs that it is recognized by. Workloads are in the order of their combination."""
    programs = {program.name: program for program in running.programs}
    recognized: Dict[str, List[Program]] = {}
    for name, sign in SIGNS.items():
        if name in programs and (programs[name].ports or not sign.listens):
            recognized.setdefault(sign.workload, []).append(programs[name])
    return recognized


def _none_recognized(processes: int) -> Finding:
    observation = f"none of {processes} processes is a program that auto recognizes"
    if not processes:
        observation = "no process can be seen, as in a capture of an earlier nearmetal"
    reason = f"{observation}: base applies; name the host's workload in tune_workload"
    return WORKLOAD.finding("advice", reason, wanted=_BASE)


def _running_workload(workload: str, recognized: Mapping[str, Sequence[Program]], applied: bool) -> Finding:
    names = ", ".join(recognized)
    goal, which = (f"[{names}]", f"all {len(recognized)}") if len(recognized) > 1 else (names, "it")
    how = "" if applied else f"; to apply {which}, set tune_workload: {goal}, or tune_workload_auto: apply"
    reason, now = _reason(workload, recognized[workload]), ", ".join(program.name for program in recognized[workload])
    return WORKLOAD.at(workload).finding("ok" if applied else "advice", f"{reason}{how}", now, workload)


def _stopped_workload(workload: str, programs: Sequence[str]) -> Finding:
    """A workload that an earlier run recognized, but none of whose programs runs now."""
    down = [name for name in programs if SIGNS[name].workload == workload]
    state = "listening" if all(SIGNS[name].listens for name in down) else "running"
    reason = (
        f"{' and '.join(down)} {'are' if len(down) > 1 else 'is'} not {state} now; an earlier run recognized {workload}"
        f" by {'them' if len(down) > 1 else 'it'}, so the workload's values stay: set tune_prune: true to take them"
        " back, or name the workload in tune_workload"
    )
    return WORKLOAD.at(workload).finding("advice", reason, wanted=workload)


def _reason(workload: str, programs: Sequence[Program]) -> str:
    observed = " and ".join(_described(program) for program in programs)
    reasons = dict.fromkeys(SIGNS[program.name].reason for program in programs)
    return f"{observed}: {'; '.join(reasons)}; {workload} is for that"


def _described(program: Program) -> str:
    """A program, the number of its processes, and the ports on which it listens."""
    parts = [f"{program.processes} processes" if program.processes > 1 else "1 process"]
    if program.contained:
        parts.append(
            "in a container" if program.contained == program.processes else f"{program.contained} in containers"
        )
    if program.ports:
        more = len(program.ports) - _MOST_PORTS
        ports = ", ".join(map(str, program.ports[:_MOST_PORTS])) + (f" and {more} more" if more > 0 else "")
        parts.append(f"{'ports' if len(program.ports) > 1 else 'port'} {ports}")
    return f"{program.name} runs on this host ({', '.join(parts)})"


def _named(names: Sequence[str]) -> str:
    return f"workload{'s' if len(names) > 1 else ''} {', '.join(names)}"
