# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs of a run, whose maintainers' wishes count. PRIVATE to the collection.

The run names them, or with `auto` they are those that run on the host.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from .._error import NearmetalError
from .._facts.facts import observe
from .._host.host import WritableHost
from .._plan import Finding
from .._planning.programs import SIGNS
from .._programs.program import Program, Wish
from .._programs.registry import NAMES, program_of
from .._words import choices, shown
from .._workloads.registry import WORKLOADS
from .combined import short
from .program_values import Claim
from .recognized import PROGRAM, asking_before
from .versions import installed_version

if TYPE_CHECKING:
    from .._facts.running import Program as Running

_AUTO = "auto"
_MOST_NAMES = 3  # of programs in the name of a run
_VERSION = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6}){0,3}", re.ASCII)


class Asking(NamedTuple):
    """What the programs of a run ask for; `run` names them in what is stored.

    `programs` were recognized and are kept on the host; None keeps those of an earlier run.
    """

    claims: Tuple[Claim, ...] = ()
    findings: Tuple[Finding, ...] = ()
    run: str = ""
    programs: Optional[Tuple[str, ...]] = ()


def ask(host: WritableHost, given: Optional[Sequence[str]], applies: bool, prune: bool, held: bool) -> Asking:
    """What the programs ask for that the option `program` names as `given`; None when it isn't given.

    `auto` only advises, unless it `applies`. Then it also applies what an earlier run recognized, as a program may be
    down for a moment, unless `prune` is set. While `held` by a waiver, it applies the earlier ones alone.
    Raises NearmetalError for names that make no sense.
    """
    if not given:
        return Asking(programs=None if given is None and not prune else ())
    if _AUTO not in given:
        versions = _named(given)
        for name in versions:
            versions[name] = versions[name] or installed_version(host, program_of(name).packages)
        return _applied(host, versions, ())
    if len(given) > 1:
        raise NearmetalError("program auto recognizes what runs on the host: leave out auto, or the other programs")
    running, processes = running_programs(host)
    earlier = _named(asking_before(host)) if applies and host.is_root() and (held or not prune) else {}
    if not applies:
        advice = [_advised(name, version) for name, version in running.items()]
        return Asking(findings=tuple(advice or [_none(processes)]))
    versions = earlier if held else {**earlier, **running}
    if not versions:
        return Asking(findings=(_none(processes),))
    found = _applied(host, versions, [name for name in versions if name not in running])
    return found._replace(programs=None if held else tuple(_word(*entry) for entry in versions.items()))


def _named(given: Iterable[str]) -> Dict[str, str]:
    """Program → version, or "", of words such as redis and mongodb=8.0. Raises NearmetalError."""
    versions: Dict[str, str] = {}
    for word in given:
        name, _equals, version = word.partition("=")
        if name not in NAMES:
            if name in WORKLOADS:
                raise NearmetalError(
                    f"program {shown(name)} is unknown, but it is a workload: set tune_workload: {name}"
                )
            raise NearmetalError(
                f"program {shown(name)} is unknown; there are auto, which recognizes what runs on the host, and"
                f" {choices(NAMES, name)}"
            )
        if _equals and not _VERSION.fullmatch(version):
            raise NearmetalError(f"program {shown(word)}: write its version as numbers, such as {name}=8.0")
        if name in versions:
            raise NearmetalError(f"program names {name} twice: name it once")
        versions[name] = version
    return versions


def running_programs(host: WritableHost) -> Tuple[Dict[str, str], int]:
    """Program → version, or "", of what runs on the host, and the number of processes that were looked at."""
    facts = observe(host, ("running",)).running
    present = {program.name: program for program in facts.programs}
    options = {option for process in facts.programs if _serves(process) for option in process.collectors}
    versions = {}
    for name in NAMES:
        program = program_of(name)
        process = next((present[process] for process in program.processes if _serves(present.get(process))), None)
        if process is not None:
            versions[name] = _version(host, program, process)
        elif program.option in options:
            versions[name] = ""
    return versions, facts.processes


def _serves(process: Optional[Running]) -> bool:
    """Whether a process is more than a tool that somebody started."""
    return process is not None and (bool(process.ports) or not SIGNS[process.name].listens)


def _version(host: WritableHost, program: Program, process: Running) -> str:
    """The version of a program that runs: of its jar, or of its package, if it may have come with one."""
    return process.version or (installed_version(host, program.packages) if process.packaged else "")


def _applied(host: WritableHost, versions: Dict[str, str], down: Sequence[str]) -> Asking:
    claims: List[Claim] = []
    findings = []
    platform = observe(host, ("platform",)).platform
    for name, version in versions.items():
        program = program_of(name)
        known, open_wishes = program.asks(version, platform.architecture)
        claims += [Claim(program.title, wish) for wish in known]
        findings.append(_finding(name, version, known, open_wishes, name in down))
    names = ", ".join(versions) if len(versions) <= _MOST_NAMES else str(len(versions))
    run = f"program{'s' if len(versions) > 1 else ''} {names}"
    return Asking(tuple(claims), tuple(findings), run)


def _finding(name: str, version: str, known: Sequence[Wish], open_wishes: Sequence[Wish], down: bool) -> Finding:
    program = program_of(name)
    listed = ", ".join(f"{wish.knob} {short(wish.value)}" for wish in known) or "nothing that nearmetal sets"
    reason = f"{_called(program, version)}: its maintainers ask for {listed}"
    reason += f", as read on {max(wish.page.read for wish in known)}" if known else ""
    if program.left:
        reason += f"; left to you: {program.left}"
    if down:
        reason += "; it isn't running now, and what an earlier run applied stays: tune_prune: true takes it back"
    if open_wishes:
        knobs = ", ".join(dict.fromkeys(wish.knob for wish in open_wishes))
        reason += (
            f"; what they ask of {knobs} depends on its version, which isn't known here: name it, as in"
            f" tune_program: {name}={open_wishes[0].since or open_wishes[0].before}"
        )
    status = "advice" if open_wishes or down else "ok"
    return PROGRAM.at(name).finding(status, reason, version or None, name)


def _advised(name: str, version: str) -> Finding:
    reason = (
        f"{_called(program_of(name), version)} runs on this host; to apply what its maintainers ask for, set"
        f" tune_program: {_word(name, version)}, or tune_workload_auto: apply"
    )
    return PROGRAM.at(name).finding("advice", reason, version or None)


def _none(processes: int) -> Finding:
    reason = f"none of {processes} processes is a program whose maintainers' wishes are known"
    return PROGRAM.finding("advice", reason)


def _called(program: Program, version: str) -> str:
    return f"{program.title} {version}" if version else program.title


def _word(name: str, version: str) -> str:
    return f"{name}={version}" if version else name
