# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way back of what prove switches: through the journal, one concern after the other. PRIVATE to the collection."""

from __future__ import annotations

from contextlib import suppress
from typing import AbstractSet, Dict, List, Mapping, Sequence, Tuple, Union

from ..._error import Damaged, NearmetalError
from ..._facts.facts import observe
from ..._facts.state_files import compares
from ..._facts.unit import identity
from ..._host import bundle, store
from ..._host.host import WritableHost
from ..._levers.registry import lever_of, place_of
from ..._memory.entry import Entry
from ..._memory.journal import Journal
from ..._memory.stored import StoredWanted
from ..._plan import Action, Finding
from ..._version import VERSION
from ..apply import apply
from ..restore import entries_by_files, plan_restore
from .record import REBOOTED, SWITCHED, Lease, present, read, release, write

_LEFT_ALONE = ("advice", "needs_reboot")  # statuses of places that a restore leaves as they are


def give_way(host: WritableHost, tunes: bool, restored: AbstractSet[str], everything: bool) -> bool:
    """End what prove compares, because a run restores the host, or concerns. Returns whether the host has changed.

    Otherwise it would tune the host again; what can't be taken back doesn't keep the host from being restored. The
    caller holds the lock. Raises NearmetalError when the run must not begin.
    """
    if tunes and compares(host):
        for kind in (SWITCHED, REBOOTED):
            read(host, kind)  # raises with a remedy of its own when the file can't be read
        raise NearmetalError(
            "prove is comparing two states of this host, so nothing else may tune the host: wait until prove"
            " ends, or end it with the module prove and step: back"
        )
    if everything and REBOOTED.is_present(host):
        release(host, REBOOTED)
    elif restored and host.exists(REBOOTED.path):
        raise NearmetalError(
            "prove is comparing two states of this host across reboots: to end that, restore everything, without"
            " naming concerns"
        )
    if not (restored or everything) or not host.exists(SWITCHED.path):
        return False
    with suppress(NearmetalError):  # the timer tries it again
        lease = present(host, SWITCHED)
        if lease is not None:
            earlier = tuple(action for action in lease.earlier if action.concern not in restored)
            put_back(host, lease._replace(earlier=earlier))
    return True


def put_back(host: WritableHost, lease: Lease) -> None:
    """Bring the host to its state before the lease, and end the lease. The caller holds the lock.

    Raises NearmetalError after everything that can be is back: the lease can then only be taken back.
    """
    store.remove_temporary(host)
    _findings, failed = untune(host, lease)
    values = [_with_present_agent(host, action) for action in lease.earlier if action.concern not in failed]
    failed.update(set_values(host, values))
    if lease.wanted:
        _remove_temporary(host, lease.earlier)
        if not lease.ending:  # once: what somebody restores before the next try isn't wanted again
            StoredWanted(host).want_again({**dict.fromkeys(lease.concerns), **lease.wanted})
    if failed:
        remaining = tuple(action for action in lease.earlier if action.concern in failed)
        write(host, lease._replace(concerns=tuple(failed), earlier=remaining, ending=True))
    require_none(failed)
    journal, places = journal_of(host), lease.order
    entries = journal.entries()
    ordered = sorted(entries, key=lambda entry: places.index(entry.key) if entry.key in places else len(places))
    if ordered != entries:
        journal.reset(ordered)
    release(host, lease.kind)


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


def untune(host: WritableHost, lease: Lease) -> Tuple[List[Finding], Dict[str, str]]:
    """Restore one concern after the other, the last one set first.

    Returns findings of what is left as it is, and concern → error.
    """
    journal, failed = journal_of(host), {}
    findings: List[Finding] = []
    for concern in journal.concerns():
        entries = [entry for entry in switched_entries(journal, lease) if entry.concern == concern]
        by_files = [
            entry
            for entry in entries_by_files(host, journal.entries(concern))
            if lease.selects(entry.concern, entry.knob)
        ]
        try:
            journal.require_readable(concern)
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


def set_values(host: WritableHost, actions: Sequence[Action]) -> Dict[str, str]:
    """Set one concern after the other, without devices that have left the host. Returns concern → error."""
    journal, failed = journal_of(host), {}
    attached = [action for action in actions if not place_of(host, action.key).detached()]
    disturbing = [action for action in attached if lever_of(action.what).disturbing]
    undisturbing = [action for action in attached if action not in disturbing]
    for concern in dict.fromkeys(action.concern for action in attached):
        try:
            for group in (disturbing, undisturbing):  # the queues of a NIC, before the settings of each queue
                places = [(action, place_of(host, action.key)) for action in group if action.concern == concern]
                present = [(action, place, place.read()) for action, place in places]
                differing = [(act, now) for act, place, now in present if not place.same(now, act.after)]
                apply(host, journal, [action._replace(before=now) for action, now in differing], tuple)
        except NearmetalError as error:
            failed[concern] = str(error)
    return failed


def require_none(failed: Mapping[str, str]) -> None:
    """Raise NearmetalError when a concern has an error."""
    if failed:
        raise NearmetalError("; ".join(f"{concern}: {error}" for concern, error in failed.items()))


def switched_entries(journal: Journal, lease: Lease) -> List[Entry]:
    """The entries of the knobs that take part, and of places that their writes changed too.

    While the tuning is being kept, also those of the files that this has written.
    """
    written = entries_on_disk(journal) if lease.wanted else []
    entries = [entry for entry in journal.entries() if lever_of(entry.what).scope == "runtime"]
    chosen = [entry for entry in entries if lease.selects(entry.concern, entry.knob)]
    writers = {(entry.concern, entry.what) for entry in chosen}
    touched = [entry for entry in entries if entry in chosen or (entry.concern, entry.disturbed_by) in writers]
    return [*touched, *(entry for entry in written if entry.key not in lease.order)]


def entries_on_disk(journal: Journal) -> List[Entry]:
    """The entries of files, which outlive a boot."""
    return [entry for entry in journal.entries() if lever_of(entry.what).scope != "runtime"]


def _with_present_agent(host: WritableHost, action: Action) -> Action:
    """The action; that of the agent keeps the version on the host, because an older one can't be built any more."""
    if action.what != "unit.agent" or action.after is None:
        return action
    return action._replace(after=identity(host) or bundle.identity(VERSION))


def _remove_temporary(host: WritableHost, actions: Sequence[Action]) -> None:
    """Remove what a process that was killed while it wrote a file left beside it."""
    for action in actions:
        for path in place_of(host, action.key).temporary():
            store.remove_file(host, path)
