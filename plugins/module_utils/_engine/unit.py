# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit in a run: it comes with the first concern that needs it, and goes with the last. PRIVATE."""

from __future__ import annotations

from functools import partial
from typing import List, Mapping, Tuple

from .._error import NearmetalError
from .._host import bundle
from .._memory import metrics_file
from .._memory.entry import Entry
from .._memory.stored import Stored
from .._plan import Action, Plan
from .._planning import unit
from .._planning.options import LAST
from .._planning.unit import NAME as UNIT
from .apply import apply, obstacles
from .restore import plan_restore
from .session import Outcome, Session


def plan_unit(session: Session, wanted: Mapping[str, Stored]) -> Tuple[Plan, Tuple[Entry, ...]]:
    """What the unit needs for what is wanted after the run, and the journal entries that need no action."""
    if not session.has_unit:
        return Plan(), ()
    session.journal.require_readable(UNIT)
    if not any(stored.replan for stored in wanted.values()):
        if session.stored.damaged:
            return Plan(), ()  # nobody knows whether it is needed
        entries = session.journal.entries(UNIT)
        restore = plan_restore(session.host, entries, "nothing is left to plan at boot any more")
        return unit.summarized(restore.plan), restore.forget
    facts = session.observed(("unit", "files"))
    if facts.unit is None or facts.files is None or unit.obstacle(facts.unit):
        return Plan(), ()
    identity = bundle.identity(session.origin.version)
    last = any(stored.options.get("persist") == LAST for stored in wanted.values())
    plan = unit.plan(facts.unit, facts.files, identity, metrics_file.directory_of(wanted.get(unit.METRICS)), last)
    in_the_way = obstacles(session.host, plan.actions)
    if in_the_way:
        raise NearmetalError("; ".join(in_the_way))
    return plan, ()


def do_unit(session: Session) -> List[Outcome]:
    """Plan the unit again, because the only concern that needs it may have failed, and do it."""
    wanted = session.stored.everything()
    try:
        plan, forget = plan_unit(session, wanted)
        if plan.actions:
            apply(session.host, session.journal, plan.actions, partial(_remaining_of_unit, session, wanted))
        if forget:
            session.journal.forget(forget)
    except NearmetalError as error:
        return [Outcome(UNIT, Plan(), error=str(error))]
    return [Outcome(UNIT, plan, done=True)] if plan.findings else []


def _remaining_of_unit(session: Session, wanted: Mapping[str, Stored]) -> Tuple[Action, ...]:
    return plan_unit(session, wanted)[0].actions if any(stored.replan for stored in wanted.values()) else ()
