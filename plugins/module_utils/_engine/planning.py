# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The planning of a run: requests → outcomes, on one observation. Reads, never writes. PRIVATE to the collection."""

from __future__ import annotations

import time
from functools import partial
from typing import AbstractSet, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

from .._error import Damaged, NearmetalError
from .._facts import boot_programs
from .._facts.facts import Facts, project
from .._facts.owners import OwnersFacts
from .._facts.topology import CPU
from .._levers.base import Beside, Key
from .._levers.registry import lever_of
from .._memory import metrics_file
from .._memory.entry import Entry
from .._memory.stored import Stored, to_store
from .._parse import cpulist
from .._plan import Action, Finding, Plan, Wanted
from .._planning import unit
from .._planning.concern import Concern
from .._planning.gate import gate_refusal, with_type
from .._planning.ownership import plan_beside_owners
from .._planning.waivers import plan_waived, waived_knobs
from .apply import obstacles
from .left_behind import other_devices
from .restore import entries_by_files, plan_restore, waits_for_boot
from .session import Outcome, Session, places_of
from .shared_changes import rehearse, require_agreement, split

# A finding with one of these statuses says that the knob is managed by this run.
MANAGED = frozenset(("ok", "would_change", "needs_reboot", "needs_restart", "unchangeable", "unknown", "waived"))
NEARMETAL = "nearmetal.ec2"
METRICS_PAGE = "docs/monitoring/README.md"
UNWANTED = "no longer wanted: back to what it was before nearmetal"


class Leave(NamedTuple):
    """Leave a concern as it is, and report these findings."""

    name: str
    findings: Tuple[Finding, ...]
    concern: None = None

    def plan(self, session: Session, facts: Facts) -> Outcome:
        waiting = waits_for_boot(session.host, session.journal.entries(self.name))
        return Outcome(self.name, Plan(findings=waiting or self.findings), keep=session.stored.get(self.name))


class Remember(NamedTuple):
    """Change nothing but what is stored beside the concerns, such as a choice of workloads; report these findings.

    `keep` is stored; None forgets what is.
    """

    name: str
    findings: Tuple[Finding, ...]
    keep: Optional[Stored] = None
    concern: None = None

    def plan(self, session: Session, facts: Facts) -> Outcome:
        return session.outcome(self.name, Plan(findings=self.findings), (), self.keep)


class Export(NamedTuple):
    """Let the unit export metrics to a directory."""

    directory: str
    name: str = unit.METRICS
    concern: None = None

    def plan(self, session: Session, facts: Facts) -> Outcome:
        keep = metrics_file.to_store(self.directory)
        metrics_file.require(session.host, self.directory)
        installed_unit = session.observed(("unit",)).unit
        trouble = unit.obstacle(installed_unit) if installed_unit is not None else ""
        if trouble:
            finding = Finding(self.name, "directory", "not_applicable", trouble, reference=METRICS_PAGE)
            return session.outcome(self.name, Plan(findings=(finding,)), (), None)
        status = "would_change" if session.stored.differs(self.name, keep) else "ok"
        reason = f"the unit exports drift, its last plan and EC2's limits to {metrics_file.path(self.directory)}"
        finding = Finding(self.name, "directory", status, reason, wanted=self.directory, reference=METRICS_PAGE)
        return session.outcome(self.name, Plan(findings=(finding,)), (), keep)


class Restore(NamedTuple):
    """Take a concern back; `concern` is None for one that only another version has.

    Without `settable` values of an earlier boot are left to the next one.
    """

    name: str
    concern: Optional[Concern] = None
    settable: bool = True

    def plan(self, session: Session, facts: Facts) -> Outcome:
        session.journal.require_readable(self.name)
        entries = session.journal.entries(self.name)
        by_files = entries_by_files(session.host, entries)
        exchanged = session.journal.exchanged(self.name)
        cpus = _coming_online(session, facts)
        reason = "taken back to what it was before nearmetal"
        restore = plan_restore(session.host, [*entries, *by_files], reason, cpus, settable=self.settable)
        # What nearmetal's files set on a new device is taken back, so no finding may report it as left alone.
        taken_back = {entry.key for entry in by_files}
        left_alone = other_devices(
            session.host, (entry for entry in exchanged if entry.key not in taken_back), "it is left as it is"
        )
        plan = restore.plan._replace(findings=restore.plan.findings + left_alone)
        forget = tuple(entry for entry in restore.forget if not self._waits(session, entry))
        return session.outcome(self.name, plan, forget + by_files + exchanged, None)

    def _waits(self, session: Session, entry: Entry) -> bool:
        """Whether another concern removed the place of the entry, so that only its restore makes the place again."""
        other_levers = _levers_of_other_concerns(session, self.name)
        if entry.follows not in other_levers or entry.void(session.host.boot_id()):
            return False
        return not entry.place(session.host).detached()


class Tune(NamedTuple):
    """Bring a concern to what is wanted: to these options, or to those that an earlier run has stored.

    Findings of `excluded` checks are left out. The `findings` are reported beside those of the plan.
    """

    name: str
    concern: Concern
    wanted: Wanted = Wanted()
    stored: Optional[Stored] = None
    excluded: AbstractSet[str] = frozenset()
    findings: Tuple[Finding, ...] = ()

    def plan(self, session: Session, facts: Facts) -> Outcome:
        # Stored options are checked again, because somebody may have written to the file since.
        wanted = self.stored.wanted(self.concern) if self.stored is not None else self.wanted
        session.journal.require_readable(self.name)
        entries = session.journal.entries(self.name)
        originals = {entry.key: (entry.original, entry.set_values) for entry in entries}
        boots = ("", session.host.boot_id() if entries else "")
        before_boot = {entry.key for entry in entries if entry.boot_id not in boots}
        facts = with_type(facts, wanted)._replace(originals=originals, before_boot=before_boot)
        facts = facts._replace(setter=partial(boot_programs.setter, session.host))
        exchanged = session.journal.exchanged(self.name)
        by_files = entries_by_files(session.host, entries)
        plan_for = partial(self._plan_for, wanted, {entry.knob for entry in entries}, facts.owners)
        plan_restore = partial(self._plan_restore, session, entries, by_files, facts)
        try:
            plan = plan_for(facts)
        except NearmetalError:
            # A value may be impossible only beside one that the run takes back.
            kept = [Finding(self.name, entry.knob, "ok", "", where=entry.where) for entry in entries]
            wished = Plan(findings=tuple(finding for finding in kept if self._wants(wanted, finding.knob)))
            plan = plan_for(project(facts, session.in_scope(plan_restore(wished)[0].actions)))
        restore, forget = plan_restore(plan)
        if restore.actions:
            # What is wanted is planned for the host as it will be after the restore.
            assumed = session.in_scope(restore.actions)
            plan = plan_for(project(facts, assumed))
            restore, forget = plan_restore(plan, assumed)
            plan, restore = _without_double_findings(plan, restore)
        disturbing = tuple(action for action in restore.actions if lever_of(action.what).disturbing)
        undisturbing = tuple(action for action in restore.actions if action not in disturbing)
        waived = waived_knobs(wanted, time.strftime("%Y-%m-%d", time.gmtime()))
        findings = tuple(finding for finding in self.findings if finding.knob not in waived)
        findings += other_devices(session.host, exchanged, "the original values of the earlier device are forgotten")
        findings += self._kept_by_programs(session, plan.actions)
        merged = Plan(disturbing + plan.actions + undisturbing, plan.findings + restore.findings + findings)
        return session.outcome(self.name, merged, forget + exchanged, self._kept(session, facts, wanted, plan))

    def remaining(self, session: Session) -> Sequence[Action]:
        """The actions that a new plan on a new observation would still do."""
        return self.plan(session, session.observed(domains((self,)))).plan.actions

    def _kept_by_programs(self, session: Session, actions: Sequence[Action]) -> Tuple[Finding, ...]:
        """What programs keep of the values that these actions replace. At boot they start after it, or soon."""
        changes = () if session.replans else session.in_scope(actions)
        if not any(self.concern.unfelt(action.knob) for action in changes):
            return ()
        running = session.observed(("running",)).running
        return self.concern.kept_by(changes, running.programs) if running is not None else ()

    def _plan_for(self, wanted: Wanted, tuned: AbstractSet[str], owners: Optional[OwnersFacts], facts: Facts) -> Plan:
        """The plan of the concern for these facts."""
        today = time.strftime("%Y-%m-%d", time.gmtime())
        plan = plan_waived(self.concern, wanted, partial(_plan_with_owners, self.concern, owners, facts), today)
        plan = self.concern.with_reasons(plan, wanted)
        findings = tuple(finding for finding in plan.findings if finding.knob not in self.excluded)
        return _with_owner(plan._replace(findings=findings), tuned)

    def _plan_restore(
        self,
        session: Session,
        entries: Sequence[Entry],
        by_files: Sequence[Entry],
        facts: Facts,
        plan: Plan,
        assumed: Sequence[Action] = (),
    ) -> Tuple[Plan, Tuple[Entry, ...]]:
        """The plan that restores knobs which `plan` no longer manages, and the entries to forget with them.

        It includes knobs that only a file of nearmetal has set, as udev rules do on a disk that came later, and the
        places of `assumed`, which `plan` takes as restored.
        """
        restored = {action.key for action in assumed}
        other_levers = _levers_of_other_concerns(session, self.name)
        dropped_by_files = self._dropped(plan, by_files, restored, other_levers)
        dropped = self._dropped(plan, entries, restored, other_levers)
        values = {action.key: action.after for action in plan.actions}
        beside = Beside(values, frozenset(facts.online))
        cpus = _coming_online(session, facts)
        restore = plan_restore(session.host, [*dropped, *dropped_by_files], UNWANTED, cpus, beside)
        return restore.plan, restore.forget

    def _dropped(
        self,
        plan: Plan,
        entries: Sequence[Entry],
        restored: AbstractSet[Key],
        other_levers: AbstractSet[str],
    ) -> List[Entry]:
        """The entries that the plan no longer manages, without places that the writes of kept entries change."""
        written = {action.key for action in plan.actions}
        unmanaged = [entry for entry in entries if entry.key in restored or not self._managed(plan, entry)]
        dropped = [entry for entry in unmanaged if entry.key not in written]
        kept = {entry.what for entry in entries if entry not in dropped} | {what for what, _where in written}
        kept |= other_levers
        return [entry for entry in dropped if entry.follows not in kept]

    def _wants(self, wanted: Wanted, name: str) -> bool:
        """Whether an option sets the knob of that name, for all devices or for one."""
        return any(
            knob.value(options) is not None
            for knob in self.concern.knobs
            if knob.name == name
            for options in (wanted, *(wanted.get(knob.within) or ()))
        )

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
        """What to store: what is wanted, if it manages a knob; on a host that may not be tuned, what is stored."""
        if gate_refusal(self.name, "state", facts, wanted):
            return session.stored.get(self.name)
        knobs = [option for option, rule in self.concern.options.items() if "default" not in rule]
        managed = any(option in wanted.options for option in knobs)
        # An image's hosts decide for themselves.
        decided = wanted.remembered if wanted.stored else {} if session.replans else plan.remember
        return to_store(wanted, plan.replan or session.replans, decided) if managed else None


# What a run is to do with one concern.
Request = Union[Export, Leave, Remember, Restore, Tune]


def domains(requests: Iterable[Request]) -> Tuple[str, ...]:
    """The facts that the requests need."""
    names = {"platform"}
    for request in requests:
        if request.concern is not None:
            names.update(("owners", *request.concern.domains))
    return tuple(sorted(names))


def plan_all(session: Session, facts: Facts, requests: Sequence[Request], strict: bool, lenient: bool) -> List[Outcome]:
    """An outcome per request. An obstacle to a concern is its outcome's error, and the outcome has no actions.

    A damaged file of nearmetal that the concern needs is an obstacle, too.
    """
    outcomes = []
    for request in requests:
        try:
            outcome = request.plan(session, facts)
            in_the_way = obstacles(session.host, outcome.plan.actions) or session.journal.untaken(outcome.plan.actions)
        except NearmetalError as error:
            if not lenient and not isinstance(error, Damaged):
                raise
            outcomes.append(session.failed(request.name, str(error), Plan()))
            continue
        refusal = next((finding for finding in outcome.plan.findings if finding.status == "refused"), None)
        if strict and refusal is not None:
            raise NearmetalError(f"{refusal.concern}.{refusal.knob} is refused, and strict is set: {refusal.reason}")
        if in_the_way:
            outcomes.append(session.failed(request.name, "; ".join(in_the_way), outcome.plan._replace(actions=())))
            continue
        outcomes.append(outcome)
        facts = project(project(facts, outcome.plan.actions), _brought_back(session, outcomes))
    actions = [action for outcome in outcomes for action in outcome.plan.actions]
    require_agreement(session.journal, actions)
    trouble = rehearse(session.host, actions)
    return [
        session.failed(outcome.name, trouble, outcome.plan._replace(actions=()))
        if trouble and split(outcome.plan.actions)[0]
        else outcome
        for outcome in outcomes
    ]


def _brought_back(session: Session, outcomes: Sequence[Outcome]) -> Tuple[Action, ...]:
    """The changes with which the last outcome ends: a place that only a write had moved goes back with that write."""
    entries = session.journal.entries()
    actions = {action.key: action for outcome in outcomes for action in outcome.plan.actions}
    settled = {entry.key for outcome in outcomes for entry in outcome.forget}
    settled.update(
        entry.key for entry in entries if entry.key in actions and actions[entry.key].after == entry.original
    )
    kept = {entry.what for entry in entries if entry.key not in settled}
    kept.update(what for what, where in actions if (what, where) not in settled)
    orphans = [entry for entry in entries if entry.follows and entry.follows not in kept]
    return plan_restore(session.host, orphans, "").plan.actions


def _coming_online(session: Session, facts: Facts) -> AbstractSet[int]:
    """The CPUs that are offline, and that earlier concerns of the run bring online."""
    if not facts.online:
        return frozenset()
    return frozenset(facts.online).difference(cpulist.parse(session.host.line(f"{CPU}/online") or ""))


def _levers_of_other_concerns(session: Session, name: str) -> AbstractSet[str]:
    """The levers by which other concerns have changed the host."""
    return {entry.what for entry in session.journal.entries() if entry.concern != name}


def _without_double_findings(plan: Plan, restore: Plan) -> Tuple[Plan, Plan]:
    """Both plans, with a place's present value as `now`.

    Where the restore alone brings what is wanted, the finding of `plan` reports the change, not that of `restore`.
    """
    start = {(action.knob, action.where): action.before for action in restore.actions}
    fulfilled = {(finding.knob, finding.where) for finding in plan.findings if finding.status == "ok"} & start.keys()
    findings = tuple(
        finding._replace(
            status="would_change" if finding.status == "ok" else finding.status,
            now=start[finding.knob, finding.where],
        )
        if (finding.knob, finding.where) in start and finding.now is not None
        else finding
        for finding in plan.findings
    )
    unfulfilled = tuple(
        finding
        for finding in restore.findings
        if finding.status != "would_change" or (finding.knob, finding.where) not in fulfilled
    )
    return plan._replace(findings=findings), restore._replace(findings=unfulfilled)


def _left_to_owner(finding: Finding) -> bool:
    """Whether somebody else owns a knob that still has nearmetal's value: it is left alone, its original is kept."""
    return finding.status == "refused" and finding.owner not in ("", NEARMETAL) and finding.now == finding.wanted


def _plan_with_owners(concern: Concern, owners: Optional[OwnersFacts], facts: Facts, wanted: Wanted) -> Plan:
    plan_of = partial(concern.plan, facts)
    return plan_beside_owners(concern.knobs, owners, plan_of, wanted) if owners is not None else plan_of(wanted)


def _with_owner(plan: Plan, tuned: AbstractSet[str]) -> Plan:
    """The plan with this collection as the owner of each knob that it has `tuned`, as the journal says.

    A knob that would change is somebody else's by now: somebody has written another value since, and we don't know who.
    """
    findings = tuple(
        finding._replace(owner=NEARMETAL)
        if finding.knob in tuned and finding.status != "would_change" and not finding.owner
        else finding
        for finding in plan.findings
    )
    return plan._replace(findings=findings)
