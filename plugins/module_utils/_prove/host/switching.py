# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Setting the states of an experiment, through the journal, one concern after the other. PRIVATE to the collection."""

from __future__ import annotations

from contextlib import suppress
from typing import List, Sequence, Tuple

from ..._engine.lease import taking_back
from ..._engine.lease.record import Lease
from ..._engine.lease.taking_back import demand_none, journal_of, set_values
from ..._error import NearmetalError
from ..._host.host import WritableHost
from ..._memory.entry import Entry
from ..._plan import Action, Finding
from .running import Experiment


def earlier_actions(host: WritableHost, lease: Lease) -> Tuple[Action, ...]:
    """The actions that set again on an untuned host what nearmetal had set before."""
    return _values(host, taking_back.switched_entries(journal_of(host), lease))


def on_disk(host: WritableHost) -> Tuple[Action, ...]:
    """The actions that bring back the files that nearmetal had written before the tuning is kept.

    A file that somebody changed so that it can't be written again is left out, so that the tuning can be kept.
    """
    actions: List[Action] = []
    for entry in taking_back.entries_on_disk(journal_of(host)):
        with suppress(NearmetalError):
            actions += _values(host, [entry])
    return tuple(actions)


def _values(host: WritableHost, entries: Sequence[Entry]) -> Tuple[Action, ...]:
    actions = []
    for entry in entries:
        place = entry.place(host)
        if place.detached():
            continue
        now = place.read()
        place.check(entry.where, now)
        reason = "as it was before the experiment"
        action = Action(entry.concern, entry.knob, entry.what, None, now, reason, "journal", entry.where)
        actions.append(action._replace(scope=place.scope))
    return tuple(actions)


def untune(host: WritableHost, experiment: Experiment, without: str = "") -> Sequence[Finding]:
    """Restore the originals of the knobs that take part, or set another tuning. Returns what can't be untuned.

    `without` a concern, that one is untuned, and all others are tuned. Raises NearmetalError after everything that
    can be untuned is.
    """
    if experiment.against:
        actions = (
            action._replace(after=action.before) if without in ("", action.concern) else action
            for action in experiment.difference
        )
        demand_none(set_values(host, [*experiment.shared, *actions]))
        return ()
    lease = experiment.lease
    if without:
        demand_none(set_values(host, [action for action in experiment.difference if action.concern != without]))
        lease = lease._replace(concerns=(without,))
    findings, failed = taking_back.untune(host, lease)
    demand_none(failed)
    return findings


def tune(host: WritableHost, experiment: Experiment) -> None:
    """Set what `tune` would. Raises NearmetalError."""
    demand_none(set_values(host, [*experiment.shared, *experiment.difference]))
