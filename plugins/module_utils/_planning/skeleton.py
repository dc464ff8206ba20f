# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps that the plan of each concern takes, in their order. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Callable, Iterable, List, Mapping, Optional, Sequence, Tuple

from .._facts.facts import Facts
from .._plan import Plan, Wanted, joined
from .concern import Concern
from .gate import gate_refusal, gate_remark
from .knob import Knob, options_of
from .native import NativeFile, by_unit, plan_file, plan_lost
from .options import LAST

Options = Mapping[str, Mapping[str, Any]]
Decide = Callable[[Facts, Wanted], Plan]


def tuning(
    name: str,
    *files: NativeFile,
    knobs: Tuple[Knob, ...],
    domains: Tuple[str, ...],
    decide: Sequence[Decide],
    manner: Options,
    options: Optional[Options] = None,
    require: Callable[[Wanted], object] = lambda _wanted: None,
    also: Decide = lambda _facts, _wanted: Plan(),
    after: Tuple[str, ...] = (),
    by_place: bool = False,
) -> Concern:
    """A concern whose plan takes exactly the usual steps.

    Its `files` set at boot what its plan has in `at_boot`. Without one of the `options` (by default those of the
    knobs) there is nothing to plan; those in `manner` only say how. `require` raises NearmetalError for options that
    contradict each other, on whatever host; `also` is planned even where `decide` isn't called, for what an earlier
    run left.
    """
    managed = options_of(knobs) if options is None else options

    def plan(facts: Facts, wanted: Wanted) -> Plan:
        """Unmanaged → the gate → decide (`unobserved` where this host doesn't show enough) → files → the unit."""
        require(wanted)
        decided, given = Plan(), _given(managed, wanted)
        refusals = tuple(finding for option in given for finding in gate_refusal(name, option, facts, wanted))
        if refusals:
            decided = Plan(findings=refusals)
        elif given:
            decided = joined(*(part(facts, wanted) for part in decide))
        persist = wanted.get("persist")
        by_workload = bool(given) and all(wanted.wanted_by(option) == "workload" for option in given)
        plans = [decided._replace(replan=False, at_boot={})]
        for file in files:
            path, text = file.path.format(name), file.text(name, decided.at_boot if persist else {})
            written = plan_file(name, facts, file, text, "workload" if by_workload else "user")
            plans.append(plan_lost(written, facts, path, text, decided.actions, knobs))
        if persist and (decided.replan or (persist == LAST and given)):
            plans.append(by_unit(name, facts, persist == LAST))
        return joined(*plans, also(facts, wanted))

    return Concern(name, {**managed, **manner}, domains, plan, after, by_place, knobs)


def per_knob(*plans: Tuple[Knob, Callable[[Facts, Wanted, Any], Plan]]) -> Decide:
    """The plans for those of these knobs that are wanted; each gets the value that is wanted."""

    def decide(facts: Facts, wanted: Wanted) -> Plan:
        values = [(plan, knob.value(wanted)) for knob, plan in plans]
        return joined(*(plan(facts, wanted, value) for plan, value in values if value is not None))

    return decide


def checking(
    name: str,
    *,
    options: Options,
    knobs: Tuple[Knob, ...],
    domains: Tuple[str, ...],
    look: Callable[[Facts, Wanted], Plan],
    require: Callable[[Wanted], object] = lambda _wanted: None,
) -> Concern:
    """A concern that only looks: it refuses nothing, and changes nothing."""

    def plan(facts: Facts, wanted: Wanted) -> Plan:
        require(wanted)
        findings = gate_remark(name, knobs[0].name, facts, wanted)
        return Plan(findings=findings) if findings else look(facts, wanted)

    return Concern(name, options, domains, plan, knobs=knobs)


def unobserved(knobs: Iterable[Knob], options: Options, wanted: Wanted, reason: str) -> Plan:
    """The plan on a host that doesn't show the facts that the concern needs."""
    plans = []
    for option in _given(options, wanted):
        knob = next(knob for knob in knobs if option in (knob.name, knob.option.partition(".")[0], knob.within))
        plans.append(knob._replace(name=option, place="").says("unknown", reason))
    return joined(*plans)


def _given(options: Options, wanted: Wanted) -> List[str]:
    """The options that this run manages; options with a default only say how."""
    return [option for option, rule in options.items() if "default" not in rule and wanted.get(option) is not None]
