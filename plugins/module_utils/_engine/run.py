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
from typing import Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._engine import dead_man, ending
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.apply import apply, roll_back
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.learnt_type import with_learnt_type
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.planning import (
    BAKE,
    REPLAN,
    TUNE,
    Outcome,
    Request,
    domains,
    plan_all,
    plan_one,
    wanted_of,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.together import Together, split
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.unit_run import NAME as UNIT
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.unit_run import do_unit, plan_unit, seen
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts, observe
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.platform import PlatformFacts
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.switch import BAKED
from ansible_collections.nearmetal.ec2.plugins.module_utils._host import store
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._memory.journal import Journal
from ansible_collections.nearmetal.ec2.plugins.module_utils._memory.stored import Stored, StoredWanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Plan
from ansible_collections.nearmetal.ec2.plugins.module_utils._version import VERSION


@dataclass(frozen=True)
class Run:
    """One run: what was observed before it, and an outcome per request."""

    facts: Facts
    outcomes: Tuple[Outcome, ...]
    confirm_within: int = 0  # seconds in which somebody must confirm what was done; 0: nothing waits


@dataclass(frozen=True)
class Origin:
    """Who runs, as it is stored with what was wanted."""

    name: str
    version: str = VERSION


ANONYMOUS = Origin("nearmetal")
PATIENCE = 3600  # seconds that the unit waits for a run of a controller, which costs it next to no CPU time

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
    mode: str = TUNE,
    lenient: bool = False,
    confirm_within: int = 0,
) -> Run:
    """Plan everything; unless `check`, do it, one concern after the other.

    What was done is stored as wanted, in the name of `origin`. `mode` is TUNE, BAKE
    (only what an image keeps) or REPLAN (only what holds until the next boot, and
    nothing is stored). With `lenient` a concern that can't be planned is named in its
    outcome, and the others are planned. With `confirm_within` seconds a change that may
    cut the host off is taken back unless somebody confirms it. Raises NearmetalError
    when a plan can't be made: nothing was changed then. A concern in whose way something
    stands is named in its outcome, one that fails while it is done is taken back by
    itself; concerns that build on it aren't started; with `roll_back_all` the whole run
    is taken back, or not begun.
    """
    if not host.is_root():
        raise NearmetalError("nearmetal needs root on the host to read its journal and to tune: set become: true")
    dead_man.demand_bounds(confirm_within)
    host.image = mode == BAKE
    with ExitStack() as stack:
        if not check:
            unit_runs = mode == REPLAN
            stack.enter_context(store.lock(host, PATIENCE if unit_runs else 0, store.UNIT if unit_runs else ""))
        platform = observe(host, ("platform",)).platform
        journal = Journal(host, platform.instance_id if platform and not host.image else None)
        stored = StoredWanted(host)
        if not check:
            dead_man.expire(host, stored)
            store.remove_temporary(host)
        known = _known(journal, stored)
        requests = ask(known)
        if mode == TUNE:
            requests = with_learnt_type(host, platform, requests, known)
        facts = seen(host, domains(requests), platform)
        outcomes = plan_all(host, journal, stored, facts, requests, strict, mode, lenient)
        unit = _plan_unit(host, journal, stored, outcomes, origin) if mode != REPLAN else []
        if not check and host.image:
            store.replace_file(host, BAKED, b"", mode=0o600, folder_mode=0o755)
            journal.set_aside()
        armed = dead_man.cuts_off([action for outcome in outcomes for action in outcome.plan.actions])
        waits = confirm_within if armed or dead_man.waits(host) else 0
        if not check:
            guard = dead_man.Guard(host, stored, armed, waits)
            look = partial(_look_again, host, journal, stored, platform, mode)
            outcomes = _do_all(host, journal, stored, requests, outcomes, roll_back_all, origin, look, guard)
            unit = _do_unit(host, journal, stored, origin) if mode != REPLAN else []
            if armed and not any(o.done and dead_man.cuts_off(o.plan.actions) for o in outcomes):
                waits = 0  # each of them failed, and was taken back
                if guard.armed:
                    dead_man.disarm(host)
        return Run(facts, tuple(outcomes + unit), waits)


def _plan_unit(
    host: WritableHost, journal: Journal, stored: StoredWanted, outcomes: Sequence[Outcome], origin: Origin
) -> List[Outcome]:
    """The outcome for the unit when all others are done; none when there is nothing to say of it."""
    wanted = stored.everything()
    for outcome in outcomes:
        wanted.pop(outcome.name, None)
        if outcome.keep is not None:
            wanted[outcome.name] = outcome.keep
    plan, _forget = plan_unit(host, journal, wanted.values(), origin.version)
    return [Outcome(UNIT, plan)] if plan.findings else []


def _do_unit(host: WritableHost, journal: Journal, stored: StoredWanted, origin: Origin) -> List[Outcome]:
    """Planned anew, because a concern that failed may have been the one that needs it."""
    try:
        plan = do_unit(host, journal, stored.everything().values(), origin.version)
    except NearmetalError as error:
        return [Outcome(UNIT, Plan(), error=str(error))]
    return [Outcome(UNIT, plan, done=True)] if plan.findings else []


def _known(journal: Journal, stored: StoredWanted) -> Dict[str, Optional[Stored]]:
    names = [name for name in journal.concerns() if name != UNIT] + stored.names()[::-1]
    return {name: stored.get(name) for name in dict.fromkeys(names)}


def _do_all(
    host: WritableHost,
    journal: Journal,
    stored: StoredWanted,
    requests: Sequence[Request],
    outcomes: Sequence[Outcome],
    roll_back_all: bool,
    origin: Origin,
    look: Callable[[Request], Sequence[Action]],
    guard: dead_man.Guard,
) -> List[Outcome]:
    stopped = next((outcome.name for outcome in outcomes if outcome.error), "")
    if stopped and roll_back_all:
        note = f"not started: {stopped} can't be done, and the whole run is one"
        return [replace(outcome, error=outcome.error or note) for outcome in outcomes]
    earlier, wanted_earlier = journal.entries(), stored.everything()
    results: List[Outcome] = []
    failed: Dict[str, str] = {}
    done: List[Action] = []
    together = Together(host, journal, [action for outcome in outcomes for action in outcome.plan.actions])
    for request, outcome in zip(requests, outcomes):
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
            _shared, own = split(outcome.plan.actions)
            guard.before(own)
            with ending.whole():
                done += apply(
                    host, journal, own, partial(look, request), partial(_remember, journal, stored, outcome, origin)
                )
            results.append(replace(outcome, done=True))
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
        note = f"the way back failed: {trouble}" if trouble else "the whole run was taken back"
        return [replace(result, done=False, error=result.error or note) for result in results]
    return results


def _remember(journal: Journal, stored: StoredWanted, outcome: Outcome, origin: Origin) -> None:
    if outcome.forget:
        journal.forget(outcome.forget)
    if outcome.memory:
        stored.put(outcome.name, outcome.keep, origin.name, origin.version)


def _look_again(
    host: WritableHost,
    journal: Journal,
    stored: StoredWanted,
    platform: Optional[PlatformFacts],
    mode: str,
    request: Request,
) -> Sequence[Action]:
    """What a new plan on a new observation would still do; nothing is planned for what is taken back."""
    if wanted_of(request) is None:
        return ()
    facts = seen(host, domains((request,)), platform)
    return plan_one(host, journal, stored, facts, request, mode).plan.actions
