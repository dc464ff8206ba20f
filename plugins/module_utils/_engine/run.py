# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run: several concerns, one observation, one ordered plan, one round trip. PRIVATE to the collection.

It holds no tuning logic. State modules run it with one request, `tune` with several.
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from functools import partial
from typing import Callable, Dict, List, NamedTuple, Sequence, Set, Tuple, Type

from .._error import Damaged, NearmetalError
from .._facts.facts import Facts
from .._host import store
from .._host.host import RUNNING, SANDBOX, WritableHost
from .._levers.registry import lever_of
from .._memory import failures
from .._memory.entry import Entry
from .._memory.journal import PATH as JOURNAL
from .._plan import Action, Plan
from .._planning.unit import NAME as UNIT
from .._words import printable
from . import ending
from .apply import apply, roll_back, settle_neighbors
from .declined import do_accepted, still_wanted
from .learnt_type import with_learnt_type
from .lease import confirmation, record
from .lease.taking_back import give_way
from .planning import Request, Restore, Tune, domains, plan_all
from .result import contract
from .session import Known, Origin, Outcome, Session
from .shared_changes import SharedChanges, split
from .unit import do_unit, plan_unit

ANONYMOUS = Origin("nearmetal")
Ask = Callable[[Known], Sequence[Request]]
_LEAST_SECONDS, _MOST_SECONDS = 30, 3600  # of the dead-man timer


class Conditions(NamedTuple):
    """How a run is done."""

    origin: Origin = ANONYMOUS  # stored with what is wanted
    kind: Type[Session] = Session  # decides which planned actions are done
    strict: bool = False  # a refused knob ends the run before anything is changed
    lenient: bool = False  # a concern that can't be planned is an error of its outcome, and the others are planned
    roll_back_all: bool = False  # when a concern fails, the whole run is taken back, or not begun
    confirm_within: int = 0  # seconds; what may cut the host off is taken back unless somebody confirms it
    restores_all: bool = False  # the host is to be restored as a whole, which ends every lease


PLAIN = Conditions()


class Run(NamedTuple):
    """One run: what was observed before it, and an outcome per request."""

    facts: Facts
    outcomes: Tuple[Outcome, ...]
    confirm_within: int = 0  # seconds in which somebody must confirm the changes; 0: no confirmation is needed


class Planned(NamedTuple):
    """What a run is going to do."""

    session: Session
    facts: Facts
    requests: Sequence[Request]
    outcomes: Sequence[Outcome]
    unit: Sequence[Outcome]
    confirm_within: int

    @property
    def run(self) -> Run:
        """The result while nothing is done."""
        return Run(self.facts, (*self.outcomes, *self.unit), self.confirm_within)

    def concerns(self, kind: Type[Request]) -> Set[str]:
        """The concerns that it tunes, or takes back."""
        return {request.name for request in self.requests if isinstance(request, kind)}

    @property
    def cuts_off(self) -> List[Action]:
        """The actions after which the host may be unreachable."""
        return confirmation.cuts_off([action for outcome in self.outcomes for action in outcome.plan.actions])


def plan_run(host: WritableHost, ask: Ask, conditions: Conditions = PLAIN) -> Run:
    """What `run` would do; this is check mode. Raises NearmetalError when a plan can't be made."""
    _require_possible(host, conditions)
    return _plan(conditions.kind(host, conditions.origin), ask, conditions).run


def run(host: WritableHost, ask: Ask, conditions: Conditions = PLAIN) -> Run:
    """Plan everything that `ask` requests, and do it, one concern after the other.

    Raises NearmetalError when a plan can't be made: nothing was changed then. An obstacle to a concern is the error of
    its outcome. A concern that fails while it is done is taken back by itself; concerns that build on it aren't
    started.
    """
    _require_possible(host, conditions)
    with conditions.kind.locked(host):
        planned = _prepared(host, ask, conditions)
        if give_way(host, bool(planned.concerns(Tune)), planned.concerns(Restore), conditions.restores_all):
            planned = _plan(conditions.kind(host, conditions.origin), ask, conditions)
        done = _carry_out(planned, conditions)
    if conditions.kind.kind is not SANDBOX:  # the unit says in its own log what it did
        _log(host, conditions.origin, done.outcomes)
    return done


def _log(host: WritableHost, origin: Origin, outcomes: Sequence[Outcome]) -> None:
    """Say in the host's log what the run was, whose, how much it changed, and where the originals are."""
    changed = sum(finding["status"] == "changed" for finding in contract(outcomes)["findings"])  # as its report counts
    failed = ", ".join(outcome.name for outcome in outcomes if outcome.error)
    name = "restored" if origin.name == ANONYMOUS.name else origin.name
    user = printable(os.environ.get("SUDO_USER", "root"))
    journal = f"{JOURNAL}{f', failed: {failed}' if failed else ''}"
    host.log(f"nearmetal {origin.version}: {name}, by {user}, {changed} changed, journal {journal}")


def run_step(host: WritableHost, ask: Ask, conditions: Conditions) -> Run:
    """The same for prove, which holds the host's lock and its lease."""
    _require_possible(host, conditions)
    return _carry_out(_prepared(host, ask, conditions), conditions)


def _prepared(host: WritableHost, ask: Ask, conditions: Conditions) -> Planned:
    """Complete what an earlier run left, and plan."""
    session = conditions.kind(host, conditions.origin)
    session.require_memory()
    confirmation.complete(host, session.journal, session.stored)
    store.remove_temporary(host)
    if host.exists(store.SMT_ON):
        from .._levers import smt  # few runs need it

        smt.complete_killed(host)
    return _plan(session, ask, conditions)


def _end_lease(planned: Planned, outcomes: List[Outcome], everything: bool) -> List[Outcome]:
    """End the lease of what was restored, after the run, because what it could not restore still needs the timer."""
    restored = {outcome.name for outcome in outcomes if outcome.done and outcome.name in planned.concerns(Restore)}
    everything = everything and all(outcome.done for outcome in outcomes)
    try:
        if restored or everything:
            confirmation.give_up(planned.session.host, None if everything else restored)
        if everything and record.ROLLED.is_present(planned.session.host):
            record.release(planned.session.host, record.ROLLED)
    except NearmetalError as error:
        note = f"restored, but the dead-man timer may set it again: {error}"
        return [outcome._replace(error=note) if outcome.name in restored else outcome for outcome in outcomes]
    return outcomes


def _require_possible(host: WritableHost, conditions: Conditions) -> None:
    if not host.is_root():
        raise NearmetalError(
            "nearmetal needs root on the host to read its journal and to tune: set become: true, become_user: root"
        )
    seconds = conditions.confirm_within
    if seconds and not _LEAST_SECONDS <= seconds <= _MOST_SECONDS:
        raise NearmetalError(
            f"tune.confirm_within: {seconds} is not possible: give {_LEAST_SECONDS} to {_MOST_SECONDS} seconds, or 0"
            " to go without confirmation"
        )


def _plan(session: Session, ask: Ask, conditions: Conditions) -> Planned:
    """Plan the run; reads, never writes."""
    known = session.known()
    requests = with_learnt_type(session, ask(known), known)
    facts = session.observed(domains(requests))
    outcomes = plan_all(session, facts, requests, conditions.strict, conditions.lenient)
    wanted = session.stored.everything()
    for outcome in outcomes:
        wanted.pop(outcome.name, None)
        if outcome.keep is not None:
            wanted[outcome.name] = outcome.keep
    try:
        plan, _forget = plan_unit(session, wanted)
        of_unit = [Outcome(UNIT, plan)] if plan.findings else []
    except NearmetalError as error:
        if not conditions.lenient and not isinstance(error, Damaged):
            raise
        of_unit = [Outcome(UNIT, Plan(), error=str(error))]
    planned = Planned(session, facts, requests, outcomes, of_unit + session.damaged(), conditions.confirm_within)
    return planned if planned.cuts_off or confirmation.waits(session.host) else planned._replace(confirm_within=0)


def _carry_out(planned: Planned, conditions: Conditions) -> Run:
    """Do the plan, one concern after the other, and the unit last."""
    session, cuts_off, waits = planned.session, planned.cuts_off, planned.confirm_within
    if cuts_off and session.kind is RUNNING and planned.concerns(Tune):
        confirmation.require_none_waits(session.host)
    session.prepare()
    guard = confirmation.Guard(session, cuts_off, waits)
    with ending.without_terminal() if cuts_off else nullcontext():
        outcomes = _do_all(planned, conditions.roll_back_all, guard)
        of_unit = do_unit(session)
    kept = any(outcome.done and confirmation.cuts_off(outcome.plan.actions) for outcome in outcomes)
    if cuts_off and not kept and not guard.end():
        waits = 0  # each of these concerns failed and was taken back
    outcomes = _end_lease(planned, outcomes, conditions.restores_all)
    _note_failures(planned, (*outcomes, *of_unit))
    return Run(planned.facts, (*outcomes, *of_unit, *session.damaged()), waits)


def _note_failures(planned: Planned, outcomes: Sequence[Outcome]) -> None:
    """Keep the failures of this run, and earlier ones of concerns that it left alone."""
    session = planned.session
    if session.kind is not RUNNING:
        return  # the unit tries again, and an image isn't this host
    tuned = planned.concerns(Tune)
    decided = {UNIT, *tuned, *planned.concerns(Restore)}
    name = session.origin.name
    failed = [outcome for outcome in outcomes if outcome.error and outcome.name in decided]
    present = {outcome.name: failures.failure(name, outcome.error) for outcome in failed}
    earlier = failures.read(session.host)
    # After a restore of everything nothing is wanted, so no failure counts.
    kept = earlier if tuned or session.known() else {}
    kept = {concern: failure for concern, failure in kept.items() if concern not in decided}
    if earlier or present:
        failures.write(session.host, {**kept, **present})


def _do_all(planned: Planned, roll_back_all: bool, guard: confirmation.Guard) -> List[Outcome]:
    session, outcomes = planned.session, planned.outcomes
    host, journal, stored = session.host, session.journal, session.stored
    stopped = next((outcome.name for outcome in outcomes if outcome.error), "")
    if stopped and roll_back_all:
        note = f"not started: {stopped} can't be done, and on_failure: rollback does all concerns of a run or none"
        return [outcome._replace(error=outcome.error or note) for outcome in outcomes]
    earlier, wanted_earlier = journal.entries(), stored.everything()
    results: List[Outcome] = []
    failed: Dict[str, str] = {}
    unrestored: List[Entry] = []  # of concerns that failed and couldn't be taken back
    done: List[Action] = []
    shared = SharedChanges(host, journal, [action for outcome in outcomes for action in outcome.plan.actions])
    for request, outcome in zip(planned.requests, outcomes):
        if outcome.error:
            failed[request.name] = outcome.error
            results.append(outcome)
            continue
        needs = [name for name in (request.concern.after if request.concern else ()) if name in failed]
        if needs:
            results.append(outcome._replace(error=f"not started: it builds on {needs[0]}, which failed"))
            failed[request.name] = needs[0]
            shared.take_back(request.name)
            continue
        before = journal.entries()
        try:
            shared.require(request.name)
            due = _planned_again(session, request, outcome, done)
            guard.arm_before(split(due.plan.actions)[1])
            with ending.uninterrupted():
                finished, changes = _do_settable(session, request, due, planned.facts)
            done += changes
            results.append(finished._replace(done=True))
        except NearmetalError as error:
            failed[request.name] = str(error)
            unrestored += [entry for entry in journal.entries() if entry not in before]
            results.append(outcome._replace(error=f"{error}{shared.take_back(request.name)}"))
    if failed and roll_back_all:
        trouble = roll_back(host, shared.done + done)
        unsettled = {entry.key: entry for entry in (*unrestored, *shared.unrestored)}
        note = f"undoing it failed: {trouble}" if trouble else "the whole run was taken back"
        try:
            if trouble:
                journal.keep(earlier, done)
            else:
                settled = [entry for entry in earlier if entry.key not in unsettled]
                journal.reset([*settled, *unsettled.values()])
                stored.reset(wanted_earlier)
        except NearmetalError as error:
            note = f"{note}; that could not be recorded: {error}"
        return [result._replace(done=False, error=result.error or note) for result in results]
    return results


def _planned_again(session: Session, request: Request, outcome: Outcome, done: Sequence[Action]) -> Outcome:
    """The outcome, planned once more where the run has brought CPUs online: only now they show their siblings.

    A plan that would cut the host off otherwise than the run has prepared for stays as it is.
    """
    levers = [(lever_of(action.what), action) for action in done]
    brought = any(lever.hidden(action.before) - lever.hidden(action.after) for lever, action in levers)
    if not brought or not isinstance(request, Tune) or "topology" not in request.concern.domains:
        return outcome
    again = request.plan(session, session.observed(domains((request,))))
    changes = [confirmation.cuts_off(planned.plan.actions) for planned in (outcome, again)]
    return again if changes[0] == changes[1] else outcome


def _do_settable(session: Session, request: Request, outcome: Outcome, facts: Facts) -> Tuple[Outcome, List[Action]]:
    """Do an outcome; of a restore, without what this boot would have had, if the host refuses that."""
    do = partial(_do, session, request)
    try:
        return do_accepted(outcome, do, session.keeps_others)
    except NearmetalError:
        if not isinstance(request, Restore):
            raise
        certain = request._replace(settable=False).plan(session, facts)
        if certain.plan.actions == outcome.plan.actions:
            raise
        return do_accepted(certain, do, session.keeps_others)


def _do(session: Session, request: Request, outcome: Outcome) -> List[Action]:
    """Apply the concern's unshared changes, and store what is wanted of it. Returns what was changed."""

    def remaining() -> List[Action]:
        return still_wanted(outcome, request.remaining(session)) if isinstance(request, Tune) else []

    unshared = split(outcome.plan.actions)[1]
    changed = apply(session.host, session.journal, unshared, remaining, partial(session.remember, outcome))
    settle_neighbors(session.host, session.journal)  # also where an entry was only forgotten
    if isinstance(request, Tune):
        session.journal.verify(request.name)
    return changed
