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
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.ownership import guarded
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine import dead_man, store
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.apply import apply, obstacles, roll_back
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.journal import Entry, Journal
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.restore import plan_restore
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.stored import Stored, StoredWanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.together import Together, demand_agreement, split
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.unit_run import NAME as UNIT
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.unit_run import do_unit, plan_unit, seen
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts, observe, project
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.unit import BAKED
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Finding, Plan, Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._version import VERSION

# A finding with one of these statuses says that the knob is managed by this run.
MANAGED = frozenset(("ok", "would_change", "needs_reboot", "needs_restart", "unchangeable", "unknown", "waived"))


@dataclass(frozen=True)
class Request:
    """One concern and what is wanted of it now, or was when it was stored; neither takes it back.

    With `stays`, a sentence, it is left as it is, and the sentence says why.
    """

    name: str
    concern: Optional[Concern] = None
    wanted: Optional[Wanted] = None
    stored: Optional[Stored] = None
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
    keep: Optional[Stored] = None
    done: bool = False
    error: str = ""


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
TUNE, BAKE, REPLAN = "tune", "bake", "replan"
PATIENCE = 20  # seconds that the unit waits for a run of a controller; systemd ends it after 30

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
    when a plan can't be made or done: nothing was changed then. A concern that fails
    while it is done is taken back by itself and named in its outcome; concerns that
    build on it aren't started; with `roll_back_all` the whole run is taken back.
    """
    if not host.is_root():
        raise NearmetalError("nearmetal needs root on the host to read its journal and to tune: set become: true")
    host.image = mode == BAKE
    with ExitStack() as stack:
        if not check:
            stack.enter_context(store.lock(host, PATIENCE if mode == REPLAN else 0))
        platform = observe(host, ("platform",)).platform
        journal = Journal(host, platform.instance_id if platform and not host.image else None)
        stored = StoredWanted(host)
        requests = ask(_known(journal, stored))
        facts = seen(host, _domains(requests))
        outcomes = _plan_all(host, journal, stored, facts, requests, strict, mode, lenient)
        unit = _plan_unit(host, journal, stored, outcomes, origin) if mode != REPLAN else []
        if not check and host.image:
            store.replace_file(host, BAKED, b"", mode=0o600, folder_mode=0o755)
        armed = dead_man.cuts_off([action for outcome in outcomes for action in outcome.plan.actions])
        waits = confirm_within if armed else 0
        if waits and not check:
            dead_man.arm(host, armed, waits)
        if not check:
            outcomes = _do_all(host, journal, stored, requests, outcomes, roll_back_all, origin, mode)
            unit = _do_unit(host, journal, stored, origin) if mode != REPLAN else []
        if waits and not check and not any(o.done and dead_man.cuts_off(o.plan.actions) for o in outcomes):
            dead_man.confirm(host)  # each of them failed, and was taken back
            waits = 0
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
    names = [entry.concern for entry in reversed(journal.entries()) if entry.concern != UNIT] + stored.names()[::-1]
    return {name: stored.get(name) for name in dict.fromkeys(names)}


def _domains(requests: Iterable[Request]) -> Tuple[str, ...]:
    wanted = {"platform"}
    for request in requests:
        if request.concern is not None:
            wanted.update(("owners", *request.concern.domains))
    return tuple(sorted(wanted))


def _plan_all(
    host: WritableHost,
    journal: Journal,
    stored: StoredWanted,
    facts: Facts,
    requests: Sequence[Request],
    strict: bool,
    mode: str,
    lenient: bool,
) -> List[Outcome]:
    outcomes = []
    for request in requests:
        try:
            outcome = _plan_one(host, journal, stored, facts, request, mode)
        except NearmetalError as error:
            if not lenient:
                raise
            outcomes.append(Outcome(request.name, Plan(), keep=stored.get(request.name), error=str(error)))
            continue
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


def _plan_one(
    host: WritableHost, journal: Journal, stored: StoredWanted, facts: Facts, request: Request, mode: str
) -> Outcome:
    entries = journal.entries(request.name)
    if request.stays:
        told = Finding(request.name, "state", "advice", request.stays, reference="docs/unit.md")
        return Outcome(request.name, Plan(findings=(told,)), keep=stored.get(request.name))
    wanted = _wanted(request)
    if request.concern is None or wanted is None:
        back = plan_restore(host, entries, "taken back to what it was before nearmetal")
        return Outcome(request.name, back.plan, back.forget, _memory(stored, request.name, None))
    plan = request.concern.plan(facts, wanted)
    if facts.owners is not None:
        # In its sandbox the unit sees a read-only /etc on every host, and it writes nothing there.
        owners = replace(facts.owners, immutable=None) if mode == REPLAN else facts.owners
        plan = guarded(owners, plan, wanted)
    managed = {finding.knob for finding in plan.findings if finding.status in MANAGED}
    touched = {(action.what, action.where) for action in plan.actions}
    dropped = [entry for entry in entries if entry.knob not in managed and entry.key not in touched]
    back = plan_restore(host, dropped, "no longer wanted: back to what it was before nearmetal")
    keep = _kept(stored, facts, request.concern, wanted, plan)
    both = Plan(plan.actions + back.plan.actions, plan.findings + back.plan.findings)
    if mode == REPLAN:
        now = tuple(action for action in both.actions if action.scope == "runtime")
        return Outcome(request.name, replace(both, actions=now), back.forget, keep=stored.get(request.name))
    if mode == BAKE:
        both = _baked(both)
    return Outcome(request.name, both, back.forget, _memory(stored, request.name, keep), keep)


def _baked(plan: Plan) -> Plan:
    """What an image keeps of a plan; the rest is said to wait for the first boot."""
    later = {(action.knob, action.where) for action in plan.actions if action.scope == "runtime"}
    findings = tuple(
        replace(finding, status="needs_reboot", reason=f"{finding.reason}; the first boot of the image does it")
        if finding.status == "would_change" and (finding.knob, finding.where) in later
        else finding
        for finding in plan.findings
    )
    return Plan(tuple(action for action in plan.actions if action.scope == "boot"), findings)


def _wanted(request: Request) -> Optional[Wanted]:
    """The options, checked; those that are stored were checked by another run, before whoever wrote there since."""
    if request.stored is not None and request.concern is not None:
        return request.stored.wanted(request.concern)
    return request.wanted


def _kept(stored: StoredWanted, facts: Facts, concern: Concern, wanted: Wanted, plan: Plan) -> Optional[Stored]:
    """What to store: what is wanted, if it manages a knob; what is stored, on a host that may not be tuned."""
    if closed(concern.name, "state", facts, wanted):
        return stored.get(concern.name)
    knobs = [option for option, rule in concern.options.items() if "default" not in rule]
    managed = any(option in wanted.options for option in knobs)
    return Stored(dict(wanted.options), dict(wanted.by), plan.replan) if managed else None


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


def _do_all(
    host: WritableHost,
    journal: Journal,
    stored: StoredWanted,
    requests: Sequence[Request],
    outcomes: Sequence[Outcome],
    roll_back_all: bool,
    origin: Origin,
    mode: str,
) -> List[Outcome]:
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
            look = partial(_look_again, host, journal, stored, request, mode)
            apply(host, journal, own, look, partial(_remember, journal, stored, outcome, origin))
            done += own
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


def _remember(journal: Journal, stored: StoredWanted, outcome: Outcome, origin: Origin) -> None:
    if outcome.forget:
        journal.forget(outcome.forget)
    if outcome.memory:
        stored.put(outcome.name, outcome.keep, origin.name, origin.version)


def _look_again(
    host: WritableHost, journal: Journal, stored: StoredWanted, request: Request, mode: str
) -> Sequence[Action]:
    """What a new plan on a new observation would still do; nothing is planned for what is taken back."""
    if _wanted(request) is None:
        return ()
    facts = seen(host, _domains((request,)))
    return _plan_one(host, journal, stored, facts, request, mode).plan.actions
