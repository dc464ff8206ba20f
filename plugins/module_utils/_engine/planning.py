# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The planning of a run: requests → outcomes, on one observation. Reads, never writes. PRIVATE to the collection."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import partial
from typing import AbstractSet, Iterable, List, Optional, Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.apply import obstacles
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.restore import (
    other_devices,
    plan_restore,
    set_elsewhere,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.session import Outcome, Session, places_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.together import demand_agreement
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import Damaged, NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts, project
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.owners import OwnersFacts
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.capabilities import Disturbing
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.registry import lever_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._memory.entry import Entry
from ansible_collections.nearmetal.ec2.plugins.module_utils._memory.stored import Stored, to_store
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Finding, Plan, Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.concern import Concern
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.gate import closed, with_type
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.ownership import guarded
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.waivers import held, plan_waived

# A finding with one of these statuses says that the knob is managed by this run.
MANAGED = frozenset(("ok", "would_change", "needs_reboot", "needs_restart", "unchangeable", "unknown", "waived"))
OURS = "nearmetal.ec2"
UNWANTED = "no longer wanted: back to what it was before nearmetal"


class Request(ABC):
    """What a run is to do with one concern."""

    name: str
    concern: Optional[Concern]

    @abstractmethod
    def plan(self, session: Session, facts: Facts) -> Outcome:
        """What is to be done on a host with these facts."""

    def left(self, session: Session) -> Sequence[Action]:
        """What a new plan on a new observation would still do."""
        return ()


@dataclass(frozen=True)
class Leave(Request):
    """Leave a concern as it is, and say these findings."""

    name: str
    findings: Tuple[Finding, ...]
    concern: None = None

    def plan(self, session: Session, facts: Facts) -> Outcome:
        return Outcome(self.name, Plan(findings=self.findings), keep=session.stored.get(self.name))


@dataclass(frozen=True)
class Remember(Request):
    """Change nothing: keep what is no concern, such as a choice of workloads, or forget it, and say these findings."""

    name: str
    findings: Tuple[Finding, ...]
    keep: Optional[Stored] = None
    concern: None = None

    def plan(self, session: Session, facts: Facts) -> Outcome:
        return session.outcome(self.name, Plan(findings=self.findings), (), self.keep)


@dataclass(frozen=True)
class Restore(Request):
    """Take a concern back; one of another version may have no `concern`."""

    name: str
    concern: Optional[Concern] = None

    def plan(self, session: Session, facts: Facts) -> Outcome:
        entries = session.journal.entries(self.name)
        elsewhere = set_elsewhere(session.host, entries)
        exchanged = session.journal.exchanged(self.name)
        back = plan_restore(session.host, [*entries, *elsewhere], "taken back to what it was before nearmetal")
        # What our files set on a new device is taken back, so it isn't said to be left as it is.
        taken_back = {entry.key for entry in elsewhere}
        left_alone = other_devices(
            session.host, (entry for entry in exchanged if entry.key not in taken_back), "it is left as it is"
        )
        plan = replace(back.plan, findings=back.plan.findings + left_alone)
        return session.outcome(self.name, plan, back.forget + elsewhere + exchanged, None)


@dataclass(frozen=True)
class Tune(Request):
    """Make a concern as it is wanted: by these options, or by those that an earlier run has stored.

    Of `unasked` checks nothing is said. The `findings` are said beside the plan.
    """

    name: str
    concern: Concern
    wanted: Wanted = field(default_factory=Wanted)
    stored: Optional[Stored] = None
    unasked: AbstractSet[str] = frozenset()
    findings: Tuple[Finding, ...] = ()

    def plan(self, session: Session, facts: Facts) -> Outcome:
        # What is stored was checked by another run, before whoever wrote there since.
        wanted = self.stored.wanted(self.concern) if self.stored is not None else self.wanted
        entries = session.journal.entries(self.name)
        originals = {entry.key: (entry.original, entry.ours) for entry in entries}
        facts = with_type(facts, wanted)._replace(originals=originals)
        exchanged = session.journal.exchanged(self.name)
        elsewhere = set_elsewhere(session.host, entries)
        plan_for = partial(self._plan_for, wanted, {entry.knob for entry in entries}, facts.owners)
        plan = plan_for(facts)
        back, forget = self._way_back(session, plan, entries, elsewhere)
        if back.actions:
            # What is wanted is planned for the host as it is when that is back.
            assumed = session.in_scope(back.actions)
            plan = plan_for(project(facts, assumed))
            back, forget = self._way_back(session, plan, entries, elsewhere, assumed)
            plan, back = _in_one_finding(plan, back)
        first = tuple(action for action in back.actions if isinstance(lever_of(action.what), Disturbing))
        later = tuple(action for action in back.actions if action not in first)
        waived = held(wanted, time.strftime("%Y-%m-%d", time.gmtime()))
        beside = tuple(finding for finding in self.findings if finding.knob not in waived)
        beside += other_devices(session.host, exchanged, "the values from before, of the earlier one, are forgotten")
        both = Plan(first + plan.actions + later, plan.findings + back.findings + beside)
        return session.outcome(self.name, both, forget + exchanged, self._kept(session, facts, wanted, plan))

    def left(self, session: Session) -> Sequence[Action]:
        return self.plan(session, session.observed(domains((self,)))).plan.actions

    def _plan_for(self, wanted: Wanted, tuned: AbstractSet[str], owners: Optional[OwnersFacts], facts: Facts) -> Plan:
        """The plan of the concern for these facts."""
        today = time.strftime("%Y-%m-%d", time.gmtime())
        plan = plan_waived(self.concern, wanted, partial(_unowned, self.concern, owners, facts), today)
        findings = tuple(finding for finding in plan.findings if finding.knob not in self.unasked)
        return _named(replace(plan, findings=findings), tuned)

    def _way_back(
        self,
        session: Session,
        plan: Plan,
        entries: Sequence[Entry],
        elsewhere: Sequence[Entry],
        assumed: Sequence[Action] = (),
    ) -> Tuple[Plan, Tuple[Entry, ...]]:
        """What takes back the knobs that the plan no longer manages, and the entries to forget with them.

        Also where only a file of ours has set them, as udev rules do on a disk that came later, and where the plan
        is for a place that is back: `assumed`.
        """
        back_by_then = {(action.what, action.where) for action in assumed}
        dropped_elsewhere = self._dropped(plan, elsewhere, back_by_then)
        dropped = self._dropped(plan, entries, back_by_then)
        back = plan_restore(session.host, [*dropped, *dropped_elsewhere], UNWANTED)
        # What only a file has set is in no journal: by its key an entry that this run makes would be forgotten.
        return back.plan, tuple(entry for entry in back.forget if entry not in dropped_elsewhere)

    def _dropped(self, plan: Plan, entries: Sequence[Entry], back_by_then: AbstractSet[Tuple[str, str]]) -> List[Entry]:
        """The journal's entries that the plan no longer manages, but for places that the writes of kept ones change."""
        touched = {(action.what, action.where) for action in plan.actions}
        left = [entry for entry in entries if entry.key in back_by_then or not self._managed(plan, entry)]
        dropped = [entry for entry in left if entry.key not in touched]
        kept = {entry.what for entry in entries if entry not in dropped} | {what for what, _where in touched}
        return [entry for entry in dropped if entry.disturbed_by not in kept]

    def _managed(self, plan: Plan, entry: Entry) -> bool:
        """Whether the plan still manages what the journal entry is about."""
        findings = [
            finding
            for finding in plan.findings
            if finding.knob == entry.knob and (finding.status in MANAGED or _left_to_owner(finding))
        ]
        if not self.concern.by_place:
            return bool(findings)
        return any(entry.where in places_of(finding) for finding in findings)

    def _kept(self, session: Session, facts: Facts, wanted: Wanted, plan: Plan) -> Optional[Stored]:
        """What to store: what is wanted, if it manages a knob; what is stored, on a host that may not be tuned."""
        if closed(self.name, "state", facts, wanted):
            return session.stored.get(self.name)
        knobs = [option for option, rule in self.concern.options.items() if "default" not in rule]
        managed = any(option in wanted.options for option in knobs)
        return to_store(wanted, plan.replan or session.replans) if managed else None


def domains(requests: Iterable[Request]) -> Tuple[str, ...]:
    """The facts that the requests need."""
    found = {"platform"}
    for request in requests:
        if request.concern is not None:
            found.update(("owners", *request.concern.domains))
    return tuple(sorted(found))


def plan_all(session: Session, facts: Facts, requests: Sequence[Request], strict: bool, lenient: bool) -> List[Outcome]:
    """An outcome per request; what stands in the way of a concern is that concern's error, and it has no actions.

    So is a damaged file of ours that the concern needs.
    """
    outcomes = []
    for request in requests:
        try:
            outcome = request.plan(session, facts)
            in_the_way = obstacles(session.host, outcome.plan.actions)
        except NearmetalError as error:
            if not lenient and not isinstance(error, Damaged):
                raise
            outcomes.append(session.failed(request.name, str(error), Plan()))
            continue
        refusal = next((finding for finding in outcome.plan.findings if finding.status == "refused"), None)
        if strict and refusal is not None:
            raise NearmetalError(f"{refusal.concern}.{refusal.knob} is refused, and strict is set: {refusal.reason}")
        if in_the_way:
            outcomes.append(session.failed(request.name, "; ".join(in_the_way), replace(outcome.plan, actions=())))
            continue
        facts = project(facts, outcome.plan.actions)
        outcomes.append(outcome)
    demand_agreement(session.journal, [action for outcome in outcomes for action in outcome.plan.actions])
    return outcomes


def _in_one_finding(plan: Plan, back: Plan) -> Tuple[Plan, Plan]:
    """Both, with each place as it is now; where what is wanted holds once it is back, that is what changes it."""
    start = {(action.knob, action.where): action.before for action in back.actions}
    fulfilled = {(finding.knob, finding.where) for finding in plan.findings if finding.status == "ok"} & start.keys()
    findings = tuple(
        replace(
            finding,
            status="would_change" if finding.status == "ok" else finding.status,
            now=start[finding.knob, finding.where],
        )
        if (finding.knob, finding.where) in start and finding.now is not None
        else finding
        for finding in plan.findings
    )
    rest = tuple(
        finding
        for finding in back.findings
        if finding.status != "would_change" or (finding.knob, finding.where) not in fulfilled
    )
    return replace(plan, findings=findings), replace(back, findings=rest)


def _left_to_owner(finding: Finding) -> bool:
    """Whether somebody else owns a knob that has our value still: it is left alone, and the way back is kept."""
    return finding.status == "refused" and finding.owner not in ("", OURS) and finding.now == finding.wanted


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
