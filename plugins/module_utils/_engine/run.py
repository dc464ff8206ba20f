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
from typing import Callable, Dict, Iterable, List, Optional, Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.concern import Concern
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine import store
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.apply import apply, obstacles, roll_back
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.journal import Entry, Journal
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.restore import plan_restore
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts, observe, project
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Plan, Wanted

# A finding with one of these statuses says that the knob is managed by this run.
MANAGED = frozenset(("ok", "would_change", "needs_reboot", "needs_restart", "unchangeable", "unknown", "waived"))


@dataclass(frozen=True)
class Request:
    """One concern and what is wanted of it; `wanted` None takes it back."""

    name: str
    concern: Optional[Concern] = None
    wanted: Optional[Wanted] = None


@dataclass(frozen=True)
class Outcome:
    """What a run planned for one concern, and whether it was done."""

    name: str
    plan: Plan
    forget: Tuple[Entry, ...] = ()
    done: bool = False
    error: str = ""


@dataclass(frozen=True)
class Run:
    """One run: what was observed before it, and an outcome per request."""

    facts: Facts
    outcomes: Tuple[Outcome, ...]


# From the concerns that the journal can take back, to what is asked for.
Ask = Callable[[List[str]], Sequence[Request]]


def run(host: WritableHost, ask: Ask, check: bool, strict: bool = False, roll_back_all: bool = False) -> Run:
    """Plan everything; unless `check`, do it, one concern after the other.

    Raises NearmetalError when a plan can't be made or done: nothing was changed then.
    A concern that fails while it is done is taken back by itself and named in its
    outcome; concerns that build on it aren't started; with `roll_back_all` the
    whole run is taken back.
    """
    if not host.is_root():
        raise NearmetalError("nearmetal needs root on the host to read its journal and to tune: set become: true")
    with ExitStack() as stack:
        if not check:
            stack.enter_context(store.lock(host))
        platform = observe(host, ("platform",)).platform
        journal = Journal(host, platform.instance_id if platform else None)
        requests = ask(list(dict.fromkeys(entry.concern for entry in reversed(journal.entries()))))
        facts = observe(host, _domains(requests))
        outcomes = _plan_all(host, journal, facts, requests, strict)
        if not check:
            outcomes = _do_all(host, journal, requests, outcomes, roll_back_all)
        return Run(facts, tuple(outcomes))


def _domains(requests: Iterable[Request]) -> Tuple[str, ...]:
    wanted = {"platform"}
    for request in requests:
        if request.concern is not None:
            wanted.update(request.concern.domains)
    return tuple(sorted(wanted))


def _plan_all(
    host: WritableHost, journal: Journal, facts: Facts, requests: Sequence[Request], strict: bool
) -> List[Outcome]:
    outcomes = []
    for request in requests:
        outcome = _plan_one(host, journal, facts, request)
        refused = [finding for finding in outcome.plan.findings if finding.status == "refused"]
        if strict and refused:
            first = refused[0]
            raise NearmetalError(f"{first.concern}.{first.knob} is refused, and strict is set: {first.reason}")
        in_the_way = obstacles(host, outcome.plan.actions)
        if in_the_way:
            raise NearmetalError("; ".join(in_the_way))
        facts = project(facts, outcome.plan.actions)
        outcomes.append(outcome)
    return outcomes


def _plan_one(host: WritableHost, journal: Journal, facts: Facts, request: Request) -> Outcome:
    entries = journal.entries(request.name)
    if request.concern is None or request.wanted is None:
        back = plan_restore(host, entries, "taken back to what it was before nearmetal")
        return Outcome(request.name, back.plan, back.forget)
    plan = request.concern.plan(facts, request.wanted)
    managed = {finding.knob for finding in plan.findings if finding.status in MANAGED}
    touched = {(action.what, action.where) for action in plan.actions}
    dropped = [entry for entry in entries if entry.knob not in managed and entry.key not in touched]
    back = plan_restore(host, dropped, "no longer wanted: back to what it was before nearmetal")
    both = Plan(plan.actions + back.plan.actions, plan.findings + back.plan.findings)
    return Outcome(request.name, both, back.forget)


def _do_all(
    host: WritableHost,
    journal: Journal,
    requests: Sequence[Request],
    outcomes: Sequence[Outcome],
    roll_back_all: bool,
) -> List[Outcome]:
    earlier = journal.entries()
    results: List[Outcome] = []
    failed: Dict[str, str] = {}
    done: List[Action] = []
    for request, outcome in zip(requests, outcomes):
        needs = [name for name in (request.concern.after if request.concern else ()) if name in failed]
        if needs:
            results.append(replace(outcome, error=f"not started: it builds on {needs[0]}, which failed"))
            failed[request.name] = needs[0]
            continue
        try:
            if outcome.plan.actions:
                apply(host, journal, outcome.plan.actions, partial(_look_again, host, journal, request))
                done += outcome.plan.actions
            if outcome.forget:
                journal.forget(outcome.forget)
            results.append(replace(outcome, done=True))
        except NearmetalError as error:
            failed[request.name] = str(error)
            results.append(replace(outcome, error=str(error)))
    if failed and roll_back_all and done:
        trouble = roll_back(host, done)
        if not trouble:
            journal.reset(earlier)
        note = f"the way back failed: {trouble}" if trouble else "the whole run was taken back"
        return [replace(result, done=False, error=result.error or note) for result in results]
    return results


def _look_again(host: WritableHost, journal: Journal, request: Request) -> Sequence[Action]:
    """What a new plan on a new observation would still do; nothing is planned for what is taken back."""
    if request.wanted is None:
        return ()
    facts = observe(host, _domains((request,)))
    return _plan_one(host, journal, facts, request).plan.actions
