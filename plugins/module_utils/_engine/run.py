# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fold: several concerns, one observation, one ordered plan, one round trip. PRIVATE to the collection.

It holds no tuning logic. State modules run it with one request, `tune` with several.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.concern import Concern
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.gate import closed
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine import store
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.apply import apply, obstacles, roll_back
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.journal import Entry, Journal
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.restore import plan_restore
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.stored import Stored, StoredWanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.together import Together, demand_agreement, split
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts, observe, project
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Finding, Plan, Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._version import VERSION

# A finding with one of these statuses says that the knob is managed by this run.
MANAGED = frozenset(("ok", "would_change", "needs_reboot", "needs_restart", "unchangeable", "unknown", "waived"))


@dataclass(frozen=True)
class Request:
    """One concern and what is wanted of it; `wanted` None takes it back.

    With `stays`, a sentence, it is left as it is, and the sentence says why.
    """

    name: str
    concern: Optional[Concern] = None
    wanted: Optional[Wanted] = None
    stays: str = ""


@dataclass(frozen=True)
class Outcome:
    """What a run planned for one concern, and whether it was done.

    `memory` shows how the stored wanted changes to `keep` when the concern is done.
    """

    name: str
    plan: Plan
    forget: Tuple[Entry, ...] = ()
    memory: Tuple[Action, ...] = ()
    keep: Optional[Wanted] = None
    done: bool = False
    error: str = ""


@dataclass(frozen=True)
class Run:
    """One run: what was observed before it, and an outcome per request."""

    facts: Facts
    outcomes: Tuple[Outcome, ...]


@dataclass(frozen=True)
class Origin:
    """Who runs, as it is stored with what was wanted."""

    name: str
    version: str = VERSION


ANONYMOUS = Origin("nearmetal")

# The concerns that can be taken back, each with what is stored of it, the last one done first.
Known = Mapping[str, Optional[Stored]]
Ask = Callable[[Known], Sequence[Request]]


def run(
    host: WritableHost,
    ask: Ask,
    check: bool,
    strict: bool = False,
    roll_back_all: bool = False,
    origin: Origin = ANONYMOUS,
) -> Run:
    """Plan everything; unless `check`, do it, one concern after the other.

    What was done is stored as wanted, in the name of `origin`. Raises NearmetalError
    when a plan can't be made or done: nothing was changed then. A concern that fails
    while it is done is taken back by itself and named in its outcome; concerns that
    build on it aren't started; with `roll_back_all` the whole run is taken back.
    """
    if not host.is_root():
        raise NearmetalError("nearmetal needs root on the host to read its journal and to tune: set become: true")
    with ExitStack() as stack:
        if not check:
            stack.enter_context(store.lock(host))
        platform = observe(host, ("platform",)).platform
        journal = Journal(host, platform.instance_id if platform else None)
        stored = StoredWanted(host)
        requests = ask(_known(journal, stored))
        facts = observe(host, _domains(requests))
        outcomes = _plan_all(host, journal, stored, facts, requests, strict)
        if not check:
            outcomes = _do_all(host, journal, stored, requests, outcomes, roll_back_all, origin)
        return Run(facts, tuple(outcomes))


def _known(journal: Journal, stored: StoredWanted) -> Dict[str, Optional[Stored]]:
    names = [entry.concern for entry in reversed(journal.entries())] + stored.names()[::-1]
    return {name: stored.get(name) for name in dict.fromkeys(names)}


def _domains(requests: Iterable[Request]) -> Tuple[str, ...]:
    wanted = {"platform"}
    for request in requests:
        if request.concern is not None:
            wanted.update(request.concern.domains)
    return tuple(sorted(wanted))


def _plan_all(
    host: WritableHost,
    journal: Journal,
    stored: StoredWanted,
    facts: Facts,
    requests: Sequence[Request],
    strict: bool,
) -> List[Outcome]:
    outcomes = []
    for request in requests:
        outcome = _plan_one(host, journal, stored, facts, request)
        refused = [finding for finding in outcome.plan.findings if finding.status == "refused"]
        if strict and refused:
            first = refused[0]
            raise NearmetalError(f"{first.concern}.{first.knob} is refused, and strict is set: {first.reason}")
        in_the_way = obstacles(host, outcome.plan.actions)
        if in_the_way:
            raise NearmetalError("; ".join(in_the_way))
        facts = project(facts, outcome.plan.actions)
        outcomes.append(outcome)
    demand_agreement(journal, [action for outcome in outcomes for action in outcome.plan.actions])
    return outcomes


def _plan_one(host: WritableHost, journal: Journal, stored: StoredWanted, facts: Facts, request: Request) -> Outcome:
    entries = journal.entries(request.name)
    if request.stays:
        told = Finding(request.name, "state", "advice", request.stays, reference="docs/unit.md")
        present = stored.get(request.name)
        keep = Wanted(present.options, present.by) if present else None
        return Outcome(request.name, Plan(findings=(told,)), keep=keep)
    if request.concern is None or request.wanted is None:
        back = plan_restore(host, entries, "taken back to what it was before nearmetal")
        return Outcome(request.name, back.plan, back.forget, _memory(stored, request.name, None))
    plan = request.concern.plan(facts, request.wanted)
    managed = {finding.knob for finding in plan.findings if finding.status in MANAGED}
    touched = {(action.what, action.where) for action in plan.actions}
    dropped = [entry for entry in entries if entry.knob not in managed and entry.key not in touched]
    back = plan_restore(host, dropped, "no longer wanted: back to what it was before nearmetal")
    keep = _kept(stored, facts, request.concern, request.wanted)
    both = Plan(plan.actions + back.plan.actions, plan.findings + back.plan.findings)
    return Outcome(request.name, both, back.forget, _memory(stored, request.name, keep), keep)


def _kept(stored: StoredWanted, facts: Facts, concern: Concern, wanted: Wanted) -> Optional[Wanted]:
    """What to store: what is wanted, if it manages a knob; what is stored, on a host that may not be tuned."""
    if closed(concern.name, "state", facts, wanted):
        present = stored.get(concern.name)
        return Wanted(present.options, present.by) if present else None
    knobs = [option for option, rule in concern.options.items() if "default" not in rule]
    return wanted if any(option in wanted.options for option in knobs) else None


def _memory(stored: StoredWanted, name: str, keep: Optional[Wanted]) -> Tuple[Action, ...]:
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


def _do_all(
    host: WritableHost,
    journal: Journal,
    stored: StoredWanted,
    requests: Sequence[Request],
    outcomes: Sequence[Outcome],
    roll_back_all: bool,
    origin: Origin,
) -> List[Outcome]:
    earlier, wanted_earlier = journal.entries(), stored.everything()
    results: List[Outcome] = []
    failed: Dict[str, str] = {}
    done: List[Action] = []
    together = Together(host, journal, [action for outcome in outcomes for action in outcome.plan.actions])
    for request, outcome in zip(requests, outcomes):
        needs = [name for name in (request.concern.after if request.concern else ()) if name in failed]
        if needs:
            results.append(replace(outcome, error=f"not started: it builds on {needs[0]}, which failed"))
            failed[request.name] = needs[0]
            together.take_back(request.name)
            continue
        try:
            together.demand(request.name)
            _shared, own = split(outcome.plan.actions)
            if own:
                apply(host, journal, own, partial(_look_again, host, journal, stored, request))
                done += own
            if outcome.forget:
                journal.forget(outcome.forget)
            if outcome.memory:
                stored.put(outcome.name, outcome.keep, origin.name, origin.version)
            results.append(replace(outcome, done=True))
        except NearmetalError as error:
            failed[request.name] = str(error)
            results.append(replace(outcome, error=f"{error}{together.take_back(request.name)}"))
    if failed and roll_back_all:
        trouble = roll_back(host, together.done + done)
        if not trouble:
            journal.reset(earlier)
            stored.reset(wanted_earlier)
        note = f"the way back failed: {trouble}" if trouble else "the whole run was taken back"
        return [replace(result, done=False, error=result.error or note) for result in results]
    return results


def _look_again(host: WritableHost, journal: Journal, stored: StoredWanted, request: Request) -> Sequence[Action]:
    """What a new plan on a new observation would still do; nothing is planned for what is taken back."""
    if request.wanted is None:
        return ()
    facts = observe(host, _domains((request,)))
    return _plan_one(host, journal, stored, facts, request).plan.actions
