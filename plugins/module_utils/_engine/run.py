# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fold: several concerns, one observation, one ordered plan, one round trip. PRIVATE to the collection.

It holds no tuning logic. State modules run it with one request, `tune` with several.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Callable, Dict, List, Sequence, Tuple, Type

from ansible_collections.nearmetal.ec2.plugins.module_utils._engine import dead_man, ending
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.apply import (
    apply,
    as_far_as_taken,
    obstacles,
    roll_back,
    still_wanted,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.experiment import switching
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.experiment.running import is_kept, running
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.learnt_type import with_learnt_type
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.planning import (
    Request,
    Restore,
    Tune,
    domains,
    plan_all,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.restore import plan_restore
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.session import Known, Origin, Outcome, Session
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.together import Together, split
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import Damaged, NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.switch import EXPERIMENT
from ansible_collections.nearmetal.ec2.plugins.module_utils._host import bundle, store
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import RUNNING, WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._memory import failures
from ansible_collections.nearmetal.ec2.plugins.module_utils._memory.entry import Entry
from ansible_collections.nearmetal.ec2.plugins.module_utils._memory.stored import Stored
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Plan
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning import unit
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.unit import NAME as UNIT

ANONYMOUS = Origin("nearmetal")
Ask = Callable[[Known], Sequence[Request]]


@dataclass(frozen=True)
class Conditions:
    """Under which a run is done."""

    origin: Origin = ANONYMOUS  # in whose name it is stored what was wanted
    kind: Type[Session] = Session  # what of a plan is done at all
    strict: bool = False  # what is refused ends the run before anything is changed
    lenient: bool = False  # a concern that can't be planned is named in its outcome, and the others are planned
    roll_back_all: bool = False  # when a concern fails, the whole run is taken back, or not begun
    confirm_within: int = 0  # seconds; what may cut the host off is taken back unless somebody confirms it
    keeps: str = ""  # the run of prove whose tuning it keeps


PLAIN = Conditions()


@dataclass(frozen=True)
class Run:
    """One run: what was observed before it, and an outcome per request."""

    facts: Facts
    outcomes: Tuple[Outcome, ...]
    confirm_within: int = 0  # seconds in which somebody must confirm what was done; 0: nothing waits


@dataclass(frozen=True)
class Planned:
    """What a run is going to do."""

    session: Session
    facts: Facts
    requests: Sequence[Request]
    outcomes: Sequence[Outcome]
    unit: Sequence[Outcome]
    confirm_within: int

    @property
    def run(self) -> Run:
        """The same as a run in check mode shows it."""
        return Run(self.facts, (*self.outcomes, *self.unit), self.confirm_within)

    @property
    def cuts_off(self) -> List[Action]:
        """The actions after which the host may not be reachable any more."""
        return dead_man.cuts_off([action for outcome in self.outcomes for action in outcome.plan.actions])


def run(host: WritableHost, ask: Ask, check: bool, conditions: Conditions = PLAIN) -> Run:
    """Plan everything; unless `check`, do it, one concern after the other.

    Raises NearmetalError when a plan can't be made: nothing was changed then. A concern in whose way something stands
    is named in its outcome, one that fails while it is done is taken back by itself; concerns that build on it aren't
    started.
    """
    if not host.is_root():
        raise NearmetalError("nearmetal needs root on the host to read its journal and to tune: set become: true")
    dead_man.demand_bounds(conditions.confirm_within)
    kind = conditions.kind
    if check:
        return _plan(kind(host, conditions.origin), ask, conditions).run
    with kind.locked(host):
        session = kind(host, conditions.origin)
        session.demand_memory()
        dead_man.expire(host, session.stored)
        dead_man.remove_leftovers(host)
        store.remove_temporary(host)
        planned = _plan(session, ask, conditions)
        compares = host.exists(EXPERIMENT) and not (conditions.keeps and is_kept(host, conditions.keeps))
        if compares and any(isinstance(request, Tune) for request in planned.requests):
            running(host)  # a file that can't be read has its own remedy
            raise NearmetalError(
                "prove compares two states of this host, so nothing else tunes it: wait for its end, or end it with"
                " the module prove and step: back"
            )
        restored = {request.name for request in planned.requests if isinstance(request, Restore)}
        if compares and restored:
            switching.give_way(host, restored)
            planned = _plan(kind(host, conditions.origin), ask, conditions)
        return _carry_out(planned, conditions.roll_back_all)


def _plan(session: Session, ask: Ask, conditions: Conditions) -> Planned:
    """What is to be done; reads, never writes."""
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
        plan, _forget = _plan_unit(session, tuple(wanted.values()))
        last = [Outcome(UNIT, plan)] if plan.findings else []
    except NearmetalError as error:
        if not conditions.lenient and not isinstance(error, Damaged):
            raise
        last = [Outcome(UNIT, Plan(), error=str(error))]
    planned = Planned(session, facts, requests, outcomes, last + session.damaged(), conditions.confirm_within)
    return planned if planned.cuts_off or dead_man.waits(session.host) else replace(planned, confirm_within=0)


def _carry_out(planned: Planned, roll_back_all: bool) -> Run:
    """Do it, one concern after the other, and the unit last."""
    session, cuts_off, waits = planned.session, planned.cuts_off, planned.confirm_within
    session.prepare()
    guard = dead_man.Guard(session.host, session.journal, session.stored, cuts_off, waits)
    with ending.without_terminal() if cuts_off else nullcontext():
        outcomes = _do_all(planned, roll_back_all, guard)
        last = _do_unit(session)
    if cuts_off and not any(outcome.done and dead_man.cuts_off(outcome.plan.actions) for outcome in outcomes):
        waits = 0  # each of them failed, and was taken back
        if guard.armed:
            dead_man.disarm(session.host)
    _note_failures(planned, (*outcomes, *last))
    return Run(planned.facts, (*outcomes, *last, *session.damaged()), waits)


def _note_failures(planned: Planned, outcomes: Sequence[Outcome]) -> None:
    """Keep what failed; what this run has done or taken back doesn't fail any more."""
    session = planned.session
    if session.kind is not RUNNING:
        return  # the unit tries again, and an image isn't this host
    tuned = {request.name for request in planned.requests if isinstance(request, Tune)}
    decided = {UNIT, *tuned, *(request.name for request in planned.requests if isinstance(request, Restore))}
    name = session.origin.name
    wrong = [outcome for outcome in outcomes if outcome.error and outcome.name in decided]
    now = {outcome.name: failures.failure(name, outcome.error) for outcome in wrong}
    earlier = failures.read(session.host)
    # After a restore of everything nothing is wanted.
    left = earlier if tuned or session.known() else {}
    left = {concern: failure for concern, failure in left.items() if concern not in decided}
    if earlier or now:
        failures.write(session.host, {**left, **now})


def _plan_unit(session: Session, wanted: Sequence[Stored]) -> Tuple[Plan, Tuple[Entry, ...]]:
    """What the unit needs for what is wanted after the run, and the journal entries that need no action."""
    if not session.has_unit:
        return Plan(), ()
    if not any(stored.replan for stored in wanted):
        if session.stored.damaged:
            return Plan(), ()  # nobody knows whether it is needed
        entries = session.journal.entries(UNIT)
        back = plan_restore(session.host, entries, "nothing is left to plan at boot any more")
        return back.plan, back.forget
    facts = session.observed(("unit", "files"))
    if facts.unit is None or facts.files is None or unit.obstacle(facts.unit):
        return Plan(), ()
    plan = unit.plan(facts.unit, facts.files, bundle.identity(session.origin.version))
    in_the_way = obstacles(session.host, plan.actions)
    if in_the_way:
        raise NearmetalError("; ".join(in_the_way))
    return plan, ()


def _do_unit(session: Session) -> List[Outcome]:
    """Planned again, because a concern that failed may have been the one that needs it."""
    wanted = tuple(session.stored.everything().values())
    try:
        plan, forget = _plan_unit(session, wanted)
        if plan.actions:
            apply(session.host, session.journal, plan.actions, partial(_left_of_unit, session, wanted))
        if forget:
            session.journal.forget(forget)
    except NearmetalError as error:
        return [Outcome(UNIT, Plan(), error=str(error))]
    return [Outcome(UNIT, plan, done=True)] if plan.findings else []


def _left_of_unit(session: Session, wanted: Sequence[Stored]) -> Tuple[Action, ...]:
    return _plan_unit(session, wanted)[0].actions if any(stored.replan for stored in wanted) else ()


def _do_all(planned: Planned, roll_back_all: bool, guard: dead_man.Guard) -> List[Outcome]:
    session, outcomes = planned.session, planned.outcomes
    host, journal, stored = session.host, session.journal, session.stored
    stopped = next((outcome.name for outcome in outcomes if outcome.error), "")
    if stopped and roll_back_all:
        note = f"not started: {stopped} can't be done, and the whole run is one"
        return [replace(outcome, error=outcome.error or note) for outcome in outcomes]
    earlier, wanted_earlier = journal.entries(), stored.everything()
    results: List[Outcome] = []
    failed: Dict[str, str] = {}
    done: List[Action] = []
    together = Together(host, journal, [action for outcome in outcomes for action in outcome.plan.actions])
    for request, outcome in zip(planned.requests, outcomes):
        if outcome.error:
            failed[request.name] = outcome.error
            results.append(outcome)
            continue
        needs = [name for name in (request.concern.after if request.concern else ()) if name in failed]
        if needs:
            results.append(replace(outcome, error=f"not started: it builds on {needs[0]}, which failed"))
            failed[request.name] = needs[0]
            together.take_back(request.name)
            continue
        try:
            together.demand(request.name)
            guard.before(split(outcome.plan.actions)[1])
            with ending.whole():
                finished, changes = as_far_as_taken(outcome, partial(_do, session, request))
            done += changes
            results.append(replace(finished, done=True))
        except NearmetalError as error:
            failed[request.name] = str(error)
            results.append(replace(outcome, error=f"{error}{together.take_back(request.name)}"))
    if failed and roll_back_all:
        trouble = roll_back(host, together.done + done)
        if not trouble:
            journal.reset(earlier)
            stored.reset(wanted_earlier)
        else:
            journal.keep(earlier)
        note = f"undoing it failed: {trouble}" if trouble else "the whole run was taken back"
        return [replace(result, done=False, error=result.error or note) for result in results]
    return results


def _do(session: Session, request: Request, outcome: Outcome) -> List[Action]:
    """Apply the concern's own changes, and remember what it leaves behind; what was changed."""

    def left() -> List[Action]:
        return still_wanted(outcome, request.left(session))

    own = split(outcome.plan.actions)[1]
    return apply(session.host, session.journal, own, left, partial(session.remember, outcome))
