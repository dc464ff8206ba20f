# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last step of a run: the unit comes when a concern needs it, and goes with the last. PRIVATE to the collection."""

from __future__ import annotations

from typing import Iterable, Optional, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.apply import apply, obstacles
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.restore import plan_restore
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts, observe
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.platform import PlatformFacts
from ansible_collections.nearmetal.ec2.plugins.module_utils._host import bundle
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._memory.journal import Entry, Journal
from ansible_collections.nearmetal.ec2.plugins.module_utils._memory.stored import Stored
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Plan
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning import unit

NAME = unit.NAME


def seen(host: WritableHost, domains: Iterable[str], platform: Optional[PlatformFacts] = None) -> Facts:
    """What is observed of the host; an image counts as booted, which its copies will be.

    The platform, which no run changes, is looked at once in a run.
    """
    facts = observe(host, [name for name in domains if name != "platform"])._replace(platform=platform)
    if host.image and facts.unit is not None and facts.unit.systemd is not None:
        return facts._replace(unit=facts.unit._replace(systemd="booted"))
    return facts


def plan_unit(
    host: WritableHost, journal: Journal, wanted: Iterable[Stored], version: str
) -> Tuple[Plan, Tuple[Entry, ...]]:
    """What the unit needs for what is wanted after the run, and the journal entries that need no action."""
    entries = journal.entries(NAME)
    if not any(stored.replan for stored in wanted):
        back = plan_restore(host, entries, "nothing is left to plan at boot any more")
        return back.plan, back.forget
    facts = seen(host, ("unit", "files"))
    if facts.unit is None or facts.files is None or unit.obstacle(facts.unit):
        return Plan(), ()
    plan = unit.plan(facts.unit, facts.files, bundle.identity(version))
    in_the_way = obstacles(host, plan.actions)
    if in_the_way:
        raise NearmetalError("; ".join(in_the_way))
    return plan, ()


def do_unit(host: WritableHost, journal: Journal, wanted: Iterable[Stored], version: str) -> Plan:
    """Plan it on the host as it is now, and do it."""
    stored = tuple(wanted)
    plan, forget = plan_unit(host, journal, stored, version)
    if plan.actions:
        apply(host, journal, plan.actions, lambda: _left(host, journal, stored, version))
    if forget:
        journal.forget(forget)
    return plan


def _left(host: WritableHost, journal: Journal, wanted: Tuple[Stored, ...], version: str) -> Tuple[Action, ...]:
    if any(stored.replan for stored in wanted):
        return plan_unit(host, journal, wanted, version)[0].actions
    return ()
