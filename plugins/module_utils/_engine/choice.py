# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which workloads a run asks for: those it names, or with `auto` those of what runs on the host. PRIVATE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.combined import demand_known
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import observe
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.running import Program, RunningFacts
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Finding
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.programs import SIGNS
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.waivers import REFERENCE

AUTO, APPLY, ADVISE = "auto", "apply", "advise"
_BASE = "base"
_MOST_PORTS = 4  # that a sentence names


@dataclass(frozen=True)
class Chosen:
    """The workloads of a run, how it is called in what is stored, and what there is to say of the choice."""

    names: Tuple[str, ...]
    run: str
    findings: Tuple[Finding, ...] = ()


def choose(host: Host, asked: Optional[Sequence[str]], auto: str, spelled_out: Mapping[str, Any]) -> Chosen:
    """The workloads of a run that was `asked` for these; None for none.

    With `auto` alone what runs on the host is looked at: it is only advised, and `base` asked for, unless the option
    `workload_auto` is `apply`. Raises NearmetalError for names that can't be meant.
    """
    if asked is None:
        return Chosen((), "tune")
    if AUTO not in asked:
        demand_known(asked)
        if spelled_out and len(asked) > 1:
            raise NearmetalError(
                f"several workloads ({', '.join(asked)}) are combined from their names, and workload_concerns spell one"
                " out, which decides: run the playbook tune for several, or name one"
            )
        return Chosen(tuple(asked), f"tune, {_named(asked)}")
    others = [name for name in asked if name != AUTO]
    if others:
        demand_known(others)
        raise NearmetalError(
            f"workload auto stands alone: it looks at what runs on the host; leave it out, or {' and '.join(others)}"
        )
    if spelled_out:
        raise NearmetalError(
            "workload auto recognises what runs on the host, and workload_concerns spell a workload out, which"
            " decides: ask for one of them"
        )
    running = observe(host, ("running",)).running
    recognised = signs(running) if running is not None else {}
    names = list(recognised) if recognised and auto == APPLY else [_BASE]
    findings = _findings(running.processes if running is not None else 0, recognised, auto == APPLY)
    return Chosen(tuple(names), f"tune, auto: {_named(names)}", findings)


def signs(running: RunningFacts) -> Dict[str, List[Program]]:
    """Workload → the programs that are signs of it, in the order in which they are combined."""
    programs = {found.name: found for found in running.programs}
    recognised: Dict[str, List[Program]] = {}
    for name, sign in SIGNS.items():
        if name in programs and (programs[name].ports or not sign.listens):
            recognised.setdefault(sign.workload, []).append(programs[name])
    return recognised


def _findings(processes: int, recognised: Mapping[str, Sequence[Program]], applies: bool) -> Tuple[Finding, ...]:
    if not recognised:
        looked = f"no program that tells of a workload is among {processes} processes"
        if not processes:
            looked = "no process can be seen, as in a capture of an earlier nearmetal"
        reason = f"{looked}: base applies; name the host's workload in tune_workload"
        return (Finding("tune", "workload", "advice", reason, wanted=_BASE, reference=REFERENCE),)
    every = ", ".join(recognised)
    goal = f"[{every}]" if len(recognised) > 1 else every
    return tuple(
        Finding(
            concern="tune",
            knob="workload",
            where=workload,
            status="ok" if applies else "advice",
            reason=_why(workload, programs)
            + ("" if applies else f"; to apply it, set tune_workload: {goal}, or tune_workload_auto: apply"),
            now=", ".join(found.name for found in programs),
            wanted=workload,
            reference=REFERENCE,
        )
        for workload, programs in recognised.items()
    )


def _why(workload: str, programs: Sequence[Program]) -> str:
    seen = " and ".join(_seen(found) for found in programs)
    reasons = dict.fromkeys(SIGNS[found.name].reason for found in programs)
    return f"{seen}: {'; '.join(reasons)}; {workload} is for that"


def _seen(found: Program) -> str:
    """A program with how many processes it has, and where it listens."""
    parts = [f"{found.processes} processes" if found.processes > 1 else "1 process"]
    if found.contained:
        parts.append("in a container" if found.contained == found.processes else f"{found.contained} in containers")
    if found.ports:
        rest = len(found.ports) - _MOST_PORTS
        ports = ", ".join(map(str, found.ports[:_MOST_PORTS])) + (f" and {rest} more" if rest > 0 else "")
        parts.append(f"{'ports' if len(found.ports) > 1 else 'port'} {ports}")
    return f"{found.name} runs here ({', '.join(parts)})"


def _named(names: Sequence[str]) -> str:
    return f"workload{'s' if len(names) > 1 else ''} {', '.join(names)}"
