# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The planning of a run: requests → outcomes, on one observation. Reads, never writes. PRIVATE to the collection."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import AbstractSet, Iterable, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.apply import obstacles
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.restore import plan_restore, set_elsewhere
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.together import demand_agreement
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts, project
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.owners import OwnersFacts
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.capabilities import Disturbing
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.registry import lever_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._memory.journal import Entry, Journal
from ansible_collections.nearmetal.ec2.plugins.module_utils._memory.stored import Stored, StoredWanted, to_store
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Finding, Plan, Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.concern import Concern
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.gate import closed, with_type
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.ownership import guarded
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.waivers import held, plan_waived

# A finding with one of these statuses says that the knob is managed by this run.
MANAGED = frozenset(("ok", "would_change", "needs_reboot", "needs_restart", "unchangeable", "unknown", "waived"))


TUNE, BAKE, REPLAN = "tune", "bake", "replan"
OURS = "nearmetal.ec2"
UNWANTED = "no longer wanted: back to what it was before nearmetal"


@dataclass(frozen=True)
class Request:
    """One concern and what is wanted of it now, or was when it was stored; neither takes it back.

    With `stays`, a sentence, it is left as it is, and the sentence says why. Of `unasked` checks nothing is said.
    `told` is said beside the plan; of what is no concern, such as the choice of a workload, it is all.
    """

    name: str
    concern: Optional[Concern] = None
    wanted: Optional[Wanted] = None
    stored: Optional[Stored] = None
    stays: str = ""
    unasked: AbstractSet[str] = frozenset()
    told: Tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What a run planned for one concern, and whether it was done.

    `memory` shows how the stored wanted changes to `keep` when the concern is done.
    """

    name: str
    plan: Plan
    forget: Tuple[Entry, ...] = ()
    memory: Tuple[Action, ...] = ()
    keep: Optional[Stored] = None
    done: bool = False
    error: str = ""


def domains(requests: Iterable[Request]) -> Tuple[str, ...]:
    wanted = {"platform"}
    for request in requests:
        if request.concern is not None:
            wanted.update(("owners", *request.concern.domains))
    return tuple(sorted(wanted))


def plan_all(
    host: WritableHost,
    journal: Journal,
    stored: StoredWanted,
    facts: Facts,
    requests: Sequence[Request],
    strict: bool,
    mode: str,
    lenient: bool,
) -> List[Outcome]:
    """An outcome per request; what stands in the way of a concern is that concern's error, and it has no actions."""
    outcomes = []
    for request in requests:
        try:
            outcome = plan_one(host, journal, stored, facts, request, mode)
            in_the_way = obstacles(host, outcome.plan.actions)
        except NearmetalError as error:
            if not lenient:
                raise
            outcomes.append(Outcome(request.name, Plan(), keep=stored.get(request.name), error=str(error)))
            continue
        refused = [finding for finding in outcome.plan.findings if finding.status == "refused"]
        if strict and refused:
            first = refused[0]
            raise NearmetalError(f"{first.concern}.{first.knob} is refused, and strict is set: {first.reason}")
        if in_the_way:
            idle = replace(outcome.plan, actions=())
            outcomes.append(Outcome(request.name, idle, keep=stored.get(request.name), error="; ".join(in_the_way)))
            continue
        facts = project(facts, outcome.plan.actions)
        outcomes.append(outcome)
    demand_agreement(journal, [action for outcome in outcomes for action in outcome.plan.actions])
    return outcomes


def plan_one(
    host: WritableHost, journal: Journal, stored: StoredWanted, facts: Facts, request: Request, mode: str
) -> Outcome:
    entries = journal.entries(request.name)
    if request.stays:
        told = Finding(request.name, "state", "advice", request.stays, reference="docs/unit.md")
        return Outcome(request.name, Plan(findings=(told,)), keep=stored.get(request.name))
    if request.told and request.concern is None:
        return Outcome(request.name, Plan(findings=request.told))
    wanted = wanted_of(request)
    if request.concern is None or wanted is None:
        elsewhere = set_elsewhere(host, entries)
        back = plan_restore(host, [*entries, *elsewhere], "taken back to what it was before nearmetal")
        return Outcome(request.name, back.plan, back.forget + elsewhere, _memory(stored, request.name, None))
    owners = facts.owners
    if owners is not None and mode == REPLAN:
        # In its sandbox the unit sees a read-only /etc on every host, and it writes nothing there.
        owners = owners._replace(immutable=None)
    facts = with_type(facts, wanted)
    facts = facts._replace(originals={entry.key: (entry.original, entry.ours) for entry in entries})
    asked = partial(_asked, request, request.concern, wanted, owners, {entry.knob for entry in entries})
    plan = asked(facts)
    dropped = _dropped(request.concern, plan, entries)
    back = plan_restore(host, dropped, UNWANTED)
    if back.plan.actions:
        # What is wanted is planned for the host as it is when that is back.
        plan = asked(project(facts, _of_mode(back.plan.actions, mode)))
        dropped = _dropped(request.concern, plan, entries)
        back = plan_restore(host, dropped, UNWANTED)
    first = tuple(action for action in back.plan.actions if isinstance(lever_of(action.what), Disturbing))
    later = tuple(action for action in back.plan.actions if action not in first)
    # Another size or type may need another plan: an image is started on any.
    keep = _kept(stored, facts, request.concern, wanted, plan.replan or mode == BAKE)
    waived = held(wanted, time.strftime("%Y-%m-%d", time.gmtime()))
    said = tuple(finding for finding in request.told if finding.knob not in waived)
    both = Plan(first + plan.actions + later, plan.findings + back.plan.findings + said)
    if mode == REPLAN:
        now = replace(both, actions=_of_mode(both.actions, mode))
        return Outcome(request.name, now, back.forget, keep=stored.get(request.name))
    if mode == BAKE:
        both = _baked(both)
    return Outcome(request.name, both, back.forget, _memory(stored, request.name, keep), keep)


def _asked(
    request: Request,
    concern: Concern,
    wanted: Wanted,
    owners: Optional[OwnersFacts],
    tuned: AbstractSet[str],
    facts: Facts,
) -> Plan:
    """What the request asks of its concern, planned for these facts."""
    today = time.strftime("%Y-%m-%d", time.gmtime())
    plan = plan_waived(concern, wanted, partial(_unowned, concern, owners, facts), today)
    plan = replace(plan, findings=tuple(told for told in plan.findings if told.knob not in request.unasked))
    return _named(plan, tuned)


def _dropped(concern: Concern, plan: Plan, entries: Sequence[Entry]) -> List[Entry]:
    """The journal's entries that the plan wants no longer, without what those that stay set anew."""
    touched = {(action.what, action.where) for action in plan.actions}
    dropped = [entry for entry in entries if not _managed(concern, plan, entry) and entry.key not in touched]
    kept = {entry.what for entry in entries if entry not in dropped} | {what for what, _where in touched}
    return [entry for entry in dropped if entry.disturbed_by not in kept]


def _of_mode(actions: Sequence[Action], mode: str) -> Tuple[Action, ...]:
    """The actions that a run of this mode does."""
    scopes = {REPLAN: ("runtime",), BAKE: ("boot",)}.get(mode, ("runtime", "boot"))
    return tuple(action for action in actions if action.scope in scopes)


def _managed(concern: Concern, plan: Plan, entry: Entry) -> bool:
    """Whether the plan still manages what the journal entry is about."""
    told = [
        finding
        for finding in plan.findings
        if finding.knob == entry.knob and (finding.status in MANAGED or _left_to_owner(finding))
    ]
    if not concern.by_place:
        return bool(told)
    return any(entry.where in _places(finding) for finding in told)


def _left_to_owner(finding: Finding) -> bool:
    """Whether somebody else owns a knob that has our value still: it is left alone, and the way back is kept."""
    return finding.status == "refused" and finding.owner not in ("", OURS) and finding.now == finding.wanted


def _places(finding: Finding) -> Tuple[str, ...]:
    """What a finding is about: its place, or those that its table names."""
    return (finding.where, *(finding.now if isinstance(finding.now, Mapping) and not finding.where else ()))


def _unowned(concern: Concern, owners: Optional[OwnersFacts], facts: Facts, wanted: Wanted) -> Plan:
    plan_of = partial(concern.plan, facts)
    return guarded(concern.knobs, owners, plan_of, wanted) if owners is not None else plan_of(wanted)


def _named(plan: Plan, tuned: AbstractSet[str]) -> Plan:
    """The plan with this collection named as the owner of each knob that the journal says it set.

    A knob that would change isn't ours any more: somebody wrote another value since, and we don't know who.
    """
    findings = tuple(
        replace(finding, owner=OURS)
        if finding.knob in tuned and finding.status != "would_change" and not finding.owner
        else finding
        for finding in plan.findings
    )
    return replace(plan, findings=findings)


def _baked(plan: Plan) -> Plan:
    """What an image keeps of a plan; the rest is said to wait for the first boot."""
    later = {(action.knob, action.where) for action in plan.actions if action.scope == "runtime"}
    findings = tuple(
        replace(finding, status="needs_reboot", reason=f"{finding.reason}; the first boot of the image does it")
        if finding.status == "would_change" and any((finding.knob, place) in later for place in _places(finding))
        else finding
        for finding in plan.findings
    )
    return Plan(_of_mode(plan.actions, BAKE), findings)


def wanted_of(request: Request) -> Optional[Wanted]:
    """The options, checked; those that are stored were checked by another run, before whoever wrote there since."""
    if request.stored is not None and request.concern is not None:
        return request.stored.wanted(request.concern)
    return request.wanted


def _kept(stored: StoredWanted, facts: Facts, concern: Concern, wanted: Wanted, replan: bool) -> Optional[Stored]:
    """What to store: what is wanted, if it manages a knob; what is stored, on a host that may not be tuned."""
    if closed(concern.name, "state", facts, wanted):
        return stored.get(concern.name)
    knobs = [option for option, rule in concern.options.items() if "default" not in rule]
    managed = any(option in wanted.options for option in knobs)
    return to_store(wanted, replan) if managed else None


def _memory(stored: StoredWanted, name: str, keep: Optional[Stored]) -> Tuple[Action, ...]:
    if not stored.differs(name, keep):
        return ()
    present = stored.get(name)
    action = Action(
        concern=name,
        knob="state",
        what="wanted",
        where=name,
        before=dict(present.options) if present else None,
        after=dict(keep.options) if keep else None,
        scope="boot",
        reason="what is wanted is kept on the host, for `nearmetal status`, the unit and later runs",
        reference="docs/unit.md",
    )
    return (action,)
