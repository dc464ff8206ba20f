# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a concern is to everything above it. PRIVATE to the collection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, NamedTuple, Sequence, Tuple, TypeVar

from .._facts.facts import Facts
from .._plan import Action, Finding, Plan, Wanted
from .knob import Knob

if TYPE_CHECKING:  # a run that changes nothing asks for no program
    from .._facts.running import Program

_Statement = TypeVar("_Statement", Action, Finding)
# When a setting takes effect → what a program that runs already keeps.
_KEPT = {
    "listen": "its sockets listen already",
    "new_memory": "the memory that it has keeps its pages",
    "open": "it has its files open",
}


class Concern(NamedTuple):
    """One thing that is tuned or checked: its options, the facts it needs, and its pure plan."""

    name: str
    options: Mapping[str, Mapping[str, Any]]  # in the form of an Ansible argument spec
    domains: Tuple[str, ...]  # of _facts.facts.DOMAINS
    plan: Callable[[Facts, Wanted], Plan]
    after: Tuple[str, ...] = ()  # concerns without which this plan is worth nothing
    # Its findings name their places, as keys of `now` or by `where`: a place that no finding names any more is taken
    # back, although the knob is still managed at other places.
    by_place: bool = False
    knobs: Tuple[Knob, ...] = ()

    @property
    def checks(self) -> Tuple[str, ...]:
        """The knobs without an option of their own, on any host: what the concern checks, or what a suboption sets.

        They tell a waiver of a check that doesn't apply to this host from a misspelt waiver.
        """
        checks = (knob for knob in self.knobs if knob.name not in self.options or "default" in (knob.spec or ()))
        return tuple(dict.fromkeys(knob.name for knob in checks))

    @property
    def bounds(self) -> Mapping[str, str]:
        """The options of which a workload's value is a bound, each with its kind."""
        return {knob.name: knob.bound for knob in self.knobs if knob.bound}

    def unfelt(self, name: str, after: str = "") -> str:
        """Why a load right after a change of this knob, or `after` a BOOT or RESTART, may not show it; else empty."""
        switched = (knob for knob in self.knobs if knob.name == name and knob.lever and knob.scope == "runtime")
        return next(filter(None, (knob.unfelt(after) for knob in switched)), "")

    def kept_by(self, actions: Sequence[Action], programs: Sequence[Program]) -> Tuple[Finding, ...]:
        """What known programs that run keep of the old values, until they start anew: a finding for each program."""
        kept: Dict[str, List[str]] = {}
        for name in dict.fromkeys(action.knob for action in actions if action.scope == "runtime"):
            kept.setdefault(self._takes_effect(name), []).append(name)
        return tuple(
            Finding(
                self.name,
                names[0],
                "needs_restart",
                f"{program.name} keeps the old {', '.join(names)} until it starts anew: {_KEPT[effect]}",
                where=program.name,
            )
            for effect, names in kept.items()
            if effect in _KEPT
            for program in programs
            if program.ports or effect != "listen"
        )

    def _takes_effect(self, name: str) -> str:
        return next((knob.takes_effect for knob in self.knobs if knob.name == name and knob.lever), "")

    def with_reasons(self, plan: Plan, wanted: Wanted) -> Plan:
        """The plan, in which each value that a workload chose has the workload's reason and its source too."""
        of_knob = {knob.name: wanted.reasons[knob.base] for knob in self.knobs if knob.base in wanted.reasons}
        if not of_knob:
            return plan
        findings = tuple(
            _with_reason(finding, of_knob) if finding.status in ("would_change", "ok") else finding
            for finding in plan.findings
        )
        if plan.actions:
            findings = tuple(self._with_gain(finding, of_knob) for finding in findings)
        return plan._replace(actions=tuple(_with_reason(action, of_knob) for action in plan.actions), findings=findings)

    def _with_gain(self, finding: Finding, of_knob: Mapping[str, Tuple[str, str]]) -> Finding:
        """The finding, with what its whole workload brought where nobody measured the change alone."""
        if finding.status != "would_change" or finding.gain or finding.knob not in of_knob or self.unfelt(finding.knob):
            return finding
        from .._measured import gain_of  # late, as in Knob.change

        workload = of_knob[finding.knob][0].partition(":")[0].replace("for ", "", 1)
        return finding._replace(gain=gain_of(workload, "untuned", "tuned"))


def _with_reason(statement: _Statement, of_knob: Mapping[str, Tuple[str, str]]) -> _Statement:
    if statement.knob not in of_knob:
        return statement
    reason, source = of_knob[statement.knob]
    return statement._replace(reason=f"{statement.reason}; {reason}", reference=source)
