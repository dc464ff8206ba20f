# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last step of a run: the unit comes when a concern needs it, and goes with the last. PRIVATE to the collection."""

from __future__ import annotations

from typing import Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.apply import apply, obstacles
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.restore import plan_restore
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.session import Session
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._host import bundle
from ansible_collections.nearmetal.ec2.plugins.module_utils._memory.entry import Entry
from ansible_collections.nearmetal.ec2.plugins.module_utils._memory.stored import Stored
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Plan
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning import unit

NAME = unit.NAME


def plan_unit(session: Session, wanted: Sequence[Stored]) -> Tuple[Plan, Tuple[Entry, ...]]:
    """What the unit needs for what is wanted after the run, and the journal entries that need no action."""
    if not session.has_unit:
        return Plan(), ()
    if not any(stored.replan for stored in wanted):
        entries = session.journal.entries(NAME)
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


def do_unit(session: Session) -> Plan:
    """Plan it on the host as it is now, and do it."""
    wanted = tuple(session.stored.everything().values())
    plan, forget = plan_unit(session, wanted)
    if plan.actions:
        apply(session.host, session.journal, plan.actions, lambda: _left(session, wanted))
    if forget:
        session.journal.forget(forget)
    return plan


def _left(session: Session, wanted: Sequence[Stored]) -> Tuple[Action, ...]:
    return plan_unit(session, wanted)[0].actions if any(stored.replan for stored in wanted) else ()
