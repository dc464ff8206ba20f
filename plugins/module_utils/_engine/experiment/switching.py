# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Setting the states of an experiment, through the journal, one concern after the other. PRIVATE to the collection."""

from __future__ import annotations

from contextlib import suppress
from typing import AbstractSet, Dict, List, Mapping, Sequence, Tuple, Union

from ..._error import Damaged, NearmetalError
from ..._facts.facts import observe
from ..._facts.unit import identity
from ..._host import bundle, store
from ..._host.host import WritableHost
from ..._levers.registry import lever_of, place_of
from ..._memory import stored
from ..._memory.entry import Entry
from ..._memory.journal import Journal
from ..._plan import Action, Finding
from ..._version import VERSION
from ..apply import apply
from ..restore import entries_by_files, plan_restore
from . import timer
from .running import Experiment, running, write

_LEFT_ALONE = ("advice", "needs_reboot")  # statuses of places that a restore leaves as they are


def earlier_actions(host: WritableHost, experiment: Experiment) -> Tuple[Action, ...]:
    """The actions that set again on an untuned host what nearmetal had set before."""
    return _values(host, _entries(journal_of(host), experiment))


def on_disk(host: WritableHost) -> Tuple[Action, ...]:
    """The actions that bring back the files that nearmetal had written before the tuning is kept.

    A file that somebody changed so that it can't be written again is left out, so that the tuning can be kept.
    """
    actions: List[Action] = []
    for entry in _on_disk(journal_of(host)):
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
        _demand_none(_set(host, [*experiment.shared, *actions]))
        return ()
    if without:
        _demand_none(_set(host, [action for action in experiment.difference if action.concern != without]))
        experiment = experiment._replace(concerns=(without,))
    findings, failed = _untune(host, experiment)
    _demand_none(failed)
    return findings


def tune(host: WritableHost, experiment: Experiment) -> None:
    """Set what `tune` would. Raises NearmetalError."""
    _demand_none(_set(host, [*experiment.shared, *experiment.difference]))


def put_back(host: WritableHost, experiment: Experiment) -> None:
    """Bring the host to its state before the experiment, and end the experiment. The caller holds the lock.

    Raises NearmetalError after everything that can be is back: the experiment can then only be taken back.
    """
    store.remove_temporary(host)
    _findings, failed = _untune(host, experiment)
    values = [_of_these_sources(host, action) for action in experiment.earlier if action.concern not in failed]
    failed.update(_set(host, values))
    if experiment.wanted is not None:
        _remove_temporary(host, experiment.earlier)
        if not experiment.ending:  # once: what somebody restores before the next try isn't wanted again
            stored.put_text(host, experiment.wanted)
    if failed:
        remaining = tuple(action for action in experiment.earlier if action.concern in failed)
        write(host, experiment._replace(concerns=tuple(failed), earlier=remaining, ending=True))
    _demand_none(failed)
    journal, places = journal_of(host), experiment.order
    entries = journal.entries()
    ordered = sorted(entries, key=lambda entry: places.index(entry.key) if entry.key in places else len(places))
    if ordered != entries:
        journal.reset(ordered)
    timer.disarm(host)


def give_way(host: WritableHost, concerns: AbstractSet[str]) -> None:
    """End an experiment because somebody restores these concerns, which aren't tuned again. The caller holds the lock.

    A failure doesn't keep the host from being restored: the timer tries it again.
    """
    with suppress(NearmetalError):
        experiment = running(host)
        if experiment is not None:
            earlier_actions = tuple(action for action in experiment.earlier if action.concern not in concerns)
            put_back(host, experiment._replace(earlier=earlier_actions))


def setting_of(about: Union[Finding, Action, Entry]) -> Tuple[str, str, str]:
    """Concern, knob and place of one setting."""
    return about.concern, about.knob, about.where


def journal_of(host: WritableHost) -> Journal:
    """The journal of the host. Raises Damaged: without it nobody knows the way back."""
    platform = observe(host, ("platform",)).platform
    journal = Journal(host, platform.instance_id if platform else None)
    if journal.damage:
        raise Damaged(journal.damage)
    return journal


def _untune(host: WritableHost, experiment: Experiment) -> Tuple[List[Finding], Dict[str, str]]:
    """Restore one concern after the other, the last one set first.

    Returns findings of what is left as it is, and concern → error.
    """
    journal, failed = journal_of(host), {}
    findings: List[Finding] = []
    for concern in journal.concerns():
        entries = [entry for entry in _entries(journal, experiment) if entry.concern == concern]
        by_files = [
            entry
            for entry in entries_by_files(host, journal.entries(concern))
            if experiment.selects(entry.concern, entry.knob)
        ]
        try:
            journal.demand_readable(concern)
            restore = plan_restore(host, [*entries, *by_files], "untuned, to compare")
            apply(host, journal, restore.plan.actions, tuple)
            findings += (finding for finding in restore.plan.findings if finding.status in _LEFT_ALONE)
            # Without its entry nobody would know that only a reboot untunes the place.
            waiting = {setting_of(finding) for finding in findings if finding.status == "needs_reboot"}
            forget = [entry for entry in restore.forget if setting_of(entry) not in waiting]
            if forget:
                journal.forget(forget)
        except NearmetalError as error:
            failed[concern] = str(error)
    return findings, failed


def _set(host: WritableHost, actions: Sequence[Action]) -> Dict[str, str]:
    """Set one concern after the other, without devices that have left the host. Returns concern → error."""
    journal, failed = journal_of(host), {}
    present = [action for action in actions if not place_of(host, action.key).detached()]
    disturbing = [action for action in present if lever_of(action.what).disturbing]
    undisturbing = [action for action in present if action not in disturbing]
    for concern in dict.fromkeys(action.concern for action in present):
        try:
            for group in (disturbing, undisturbing):  # the queues of a NIC, before the settings of each queue
                changes = _changes(host, [action for action in group if action.concern == concern])
                apply(host, journal, changes, tuple)
        except NearmetalError as error:
            failed[concern] = str(error)
    return failed


def _changes(host: WritableHost, actions: Sequence[Action]) -> List[Action]:
    """The actions that still change something, each with the present value as `before`."""
    return [
        action._replace(before=now)
        for action in actions
        for place in (place_of(host, action.key),)
        for now in (place.read(),)
        if not place.values.same(now, action.after)
    ]


def _of_these_sources(host: WritableHost, action: Action) -> Action:
    """The action; that of the agent keeps the version on the host, because an older one can't be built any more."""
    if action.what != "unit.agent" or action.after is None:
        return action
    return action._replace(after=identity(host) or bundle.identity(VERSION))


def _remove_temporary(host: WritableHost, actions: Sequence[Action]) -> None:
    """Remove what a process that was killed while it wrote a file left beside it."""
    for action in actions:
        for path in place_of(host, action.key).temporary():
            store.remove_file(host, path)


def _demand_none(failed: Mapping[str, str]) -> None:
    if failed:
        raise NearmetalError("; ".join(f"{concern}: {error}" for concern, error in failed.items()))


def _entries(journal: Journal, experiment: Experiment) -> List[Entry]:
    """The entries of the knobs that take part, and of places that their writes changed too.

    While the tuning is being kept, also those of the files that this has written.
    """
    written = [] if experiment.wanted is None else _on_disk(journal)
    entries = [entry for entry in journal.entries() if lever_of(entry.what).scope == "runtime"]
    chosen = [entry for entry in entries if experiment.selects(entry.concern, entry.knob)]
    writers = {(entry.concern, entry.what) for entry in chosen}
    touched = [entry for entry in entries if entry in chosen or (entry.concern, entry.disturbed_by) in writers]
    return [*touched, *(entry for entry in written if entry.key not in experiment.order)]


def _on_disk(journal: Journal) -> List[Entry]:
    return [entry for entry in journal.entries() if lever_of(entry.what).scope != "runtime"]
