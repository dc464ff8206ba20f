# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lease of a network change that may cut the host off: it comes back unless a new connection confirms it. PRIVATE.

It is armed right before the first such change. A reboot ends the timer and brings the old values back too. The file
stays then, so that the unit doesn't set the new values again but stores again what was confirmed before.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Container, List, Optional, Sequence

from ..._error import Damaged, NearmetalError
from ..._facts.facts import observe
from ..._host import agent_timer, store
from ..._host.host import WritableHost
from ..._levers.registry import place_of
from ..._memory.journal import Journal
from ..._memory.stored import StoredWanted
from ..._plan import Action
from .. import ending
from ..apply import roll_back
from ..session import Session
from .record import CHANGE, PATIENCE, Lease, Unread, arm, present, read, release, write


def cuts_off(actions: Sequence[Action]) -> List[Action]:
    """The actions after which the host may be unreachable."""
    return [action for action in actions if action.disruptive and action.what.startswith(("network.", "routes."))]


class Guard:
    """The lease of one run, armed not before the first action that may cut the host off."""

    def __init__(self, session: Session, actions: Sequence[Action], seconds: int) -> None:
        self.armed = False
        self._host = session.host
        self._actions = cuts_off(actions) if seconds else []
        if not self._actions:
            return
        python = agent_timer.python_of(session.host)
        if not python:
            raise NearmetalError(
                "no dead-man timer can be armed without systemd and Python 3.7 or later at boot: set confirm_within: 0"
                " to go without confirmation"
            )
        places = {action.key for action in self._actions}
        stored = {concern: session.stored.get(concern) for concern in sorted({act.concern for act in self._actions})}
        self._lease = Lease(
            CHANGE,
            boot_id=session.host.boot_id(),
            abandon_after=seconds,
            python=python,
            actions=tuple(self._actions),
            devices=tuple(place_of(session.host, act.key).identity() for act in self._actions),
            journal=tuple(entry for entry in session.journal.entries() if entry.key in places),
            wanted={concern: value if value and not value.damage else None for concern, value in stored.items()},
        )

    def arm_before(self, actions: Sequence[Action]) -> None:
        """Arm it when one of these actions may cut the host off: if this raises NearmetalError, don't do them."""
        if not self.armed and self._actions and cuts_off(actions):
            arm(self._host, self._lease)
            self.armed = True

    def end(self) -> bool:
        """End the lease if each place is as it was before the run. Returns whether it goes on.

        What the run couldn't undo is left to the timer, which tries until it can.
        """
        places = [(place_of(self._host, action.key), action.before) for action in self._actions if self.armed]
        if not all(place.detached() or place.same(place.read(), before) for place, before in places):
            return True
        if self.armed:
            with suppress(NearmetalError):  # the timer will find nothing to put back
                release(self._host, CHANGE)
        return False


def require_none_waits(host: WritableHost) -> None:
    """Raise NearmetalError while a change waits to be confirmed: its timer would take back a later one, too."""
    if present(host, CHANGE) is not None:
        raise NearmetalError(
            "an earlier network change still waits to be confirmed: run `nearmetal confirm` on the host over a new"
            " connection, or wait until the timer has taken the change back, and run again"
        )


def waits(host: WritableHost) -> bool:
    """Whether a change waits to be confirmed; False when its file is damaged."""
    with suppress(Damaged):
        return present(host, CHANGE) is not None
    return False


def confirm(host: WritableHost) -> bool:
    """Keep the change, because the host is reachable. Returns whether one waited; raises like `can_confirm`."""
    with store.lock(host, PATIENCE):
        waited = can_confirm(host)
        if waited:
            release(host, CHANGE)
        return waited


def can_confirm(host: WritableHost) -> bool:
    """Whether a change waits to be confirmed. Raises NearmetalError when it is too late to confirm it."""
    waiting = present(host, CHANGE) is not None
    if waiting and host.exists(CHANGE.fired):
        raise NearmetalError(
            "too late to confirm: the dead-man timer is putting the earlier values back; then run again"
        )
    return waiting


def give_up(host: WritableHost, concerns: Optional[Container[str]]) -> None:
    """Put nothing of these concerns back any more (None: of none), because they are restored.

    The caller holds the lock. Otherwise the timer would bring back what an earlier run had tuned. Raises NearmetalError
    when the file can't be changed; a damaged one puts nothing back anyway.
    """
    with suppress(Damaged):
        lease = read(host, CHANGE)
        if lease is None:
            return
        stay = {action.concern for action in lease.actions if concerns is not None and action.concern not in concerns}
        pairs = [(action, device) for action, device in zip(lease.actions, lease.devices) if action.concern in stay]
        if not pairs:
            release(host, CHANGE)
        elif len(pairs) < len(lease.actions):
            actions, devices = zip(*pairs)
            entries = tuple(entry for entry in lease.journal if entry.concern in stay)
            wanted = {concern: stored for concern, stored in lease.wanted.items() if concern in stay}
            write(host, lease._replace(actions=actions, devices=devices, journal=entries, wanted=wanted))


def warnings(host: WritableHost) -> List[str]:
    """What is to be known of a change that nobody confirms any more, in sentences."""
    try:
        lease = read(host, CHANGE)
    except Damaged as error:
        return [str(error)]
    if lease is None or lease.boot_id == host.boot_id():
        return []
    ended = "nobody confirmed its network change before the reboot, so it isn't set again"
    return [f"{concern}: {ended}" for concern in sorted(lease.wanted)]


def complete(host: WritableHost, journal: Journal, stored: StoredWanted) -> None:
    """Complete what a reboot or a kill has left of a lease; the caller holds the lock.

    After a reboot what was confirmed last is stored again. Of a timer's run that was killed the originals are kept that
    it couldn't record, and of a run that was killed while it armed the timer nothing. Raises NearmetalError while the
    originals can't be recorded.
    """
    with suppress(Damaged):
        lease = read(host, CHANGE)
        if lease is not None and lease.boot_id != host.boot_id() and not stored.damage:
            stored.want_again(lease.wanted)
            release(host, CHANGE)
        elif lease is not None and host.exists(CHANGE.fired):
            journal.keep(lease.journal)
    if host.exists(CHANGE.timer.agent) and not host.exists(CHANGE.path):
        with suppress(NearmetalError):
            release(host, CHANGE)


def take_back(host: WritableHost) -> List[str]:
    """Put back the earlier values, and what was wanted then. Returns what was done, in sentences.

    A device that came to a place since then is left as it is. Raises NearmetalError when something couldn't be put
    back: the timer tries again, unless nothing says what to put back.
    """
    with store.lock(host), ending.uninterrupted():
        try:
            lease = read(host, CHANGE)
        except Unread:
            raise  # a disk error may be temporary
        except Damaged:
            with suppress(NearmetalError):
                agent_timer.stop(host, CHANGE.timer.unit)
            raise
        if lease is None:
            release(host, CHANGE)
            return []
        places = [(action, place_of(host, action.key), device) for action, device in zip(lease.actions, lease.devices)]
        replaced = [(action, place) for action, place, device in places if place.exchanged(device)]
        kept = [
            (action, place) for action, place, device in places if not (place.exchanged(device) or place.detached())
        ]
        changed = [action for action, place in kept if place.read() != action.before]
        with suppress(NearmetalError):  # should this process be killed, nobody confirms, and the next run completes it
            store.replace_file(host, CHANGE.fired, b"", mode=0o600, folder_mode=0o755)
        trouble = roll_back(host, changed)  # first: a full disk may refuse the records, and the lock keeps others out
        failures = [f"could not put everything back: {trouble}"] if trouble else []
        try:
            _record(host, lease, [] if trouble else [action for action, _place in kept])
        except NearmetalError as error:
            failures.append(f"could not record that the earlier values are back: {error}")
        if failures:
            raise NearmetalError(f"the dead-man timer {' and '.join(failures)}")
        release(host, CHANGE)
    sentences = [
        f"{action.concern}.{action.knob}: nobody confirmed the change, so {action.what} {action.where} has its earlier"
        " value again"
        for action in changed
    ]
    return sentences + [
        f"{action.concern}.{action.knob}: nobody confirmed the change, but {place.device_name()} is not the device that"
        f" was at {action.where} then: it is left as it is"
        for action, place in replaced
    ]


def _record(host: WritableHost, lease: Lease, restored: Sequence[Action]) -> None:
    """Store again what was wanted and journaled before the run; the places of `restored` are as they were then.

    This is needed even when this attempt changed nothing, because an earlier one may have ended before it.
    """
    StoredWanted(host).want_again(lease.wanted)
    platform = observe(host, ("platform",)).platform
    journal = Journal(host, platform.instance_id if platform else None)
    if not journal.damage:
        journal.keep(lease.journal)  # the run has forgotten those whose originals it brought back
        journal.settle([action._replace(after=action.before) for action in restored])
