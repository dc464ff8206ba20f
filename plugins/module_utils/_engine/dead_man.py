# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The dead-man timer: a network change that cuts the host off takes itself back. PRIVATE to the collection.

It is armed right before the first such change. A new connection to the host confirms the change. Without a confirmation
systemd starts a copy of the agent in /run, again and again until the old values are back. A reboot ends the timer and
brings the old values back too. The file that records the change stays then, so that the unit doesn't set the new values
again but stores again what was confirmed before.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, Container, Iterable, List, Mapping, NamedTuple, Optional, Sequence

from .._error import Damaged, NearmetalError
from .._facts.facts import observe
from .._host import agent_timer, store
from .._host.host import WritableHost
from .._levers.registry import lever_of, place_of
from .._memory.entry import Entry, data_of, entry_of
from .._memory.journal import Journal
from .._memory.stored import Stored, StoredWanted, as_data, stored_of
from .._parse import json_text
from .._plan import Action
from .._version import VERSION
from . import ending
from .apply import roll_back

ARMED = f"{store.DATA}/dead-man.json"
AGENT = f"{store.RUN}/dead-man.pyz"
FIRED = f"{store.RUN}/dead-man.fired"  # in memory, where neither a full nor a read-only disk refuses it
TIMER = agent_timer.AgentTimer(
    "nearmetal-dead-man", "Put back the network change that nobody confirmed", AGENT, "dead-man"
)
PATIENCE = 60  # seconds that a confirmation waits for the run that it confirms


class _Armed(NamedTuple):
    """What is put back unless somebody confirms."""

    boot_id: str
    actions: Sequence[Action]
    devices: Sequence[str]  # the identity of each action's device
    entries: Sequence[Entry]  # the journal's entries of these places
    wanted: Mapping[str, Optional[Stored]]  # concern → what was confirmed last


def cuts_off(actions: Sequence[Action]) -> List[Action]:
    """The actions after which the host may be unreachable."""
    return [action for action in actions if action.disruptive and action.what.startswith(("network.", "routes."))]


class _Unread(Damaged):
    """The file of the armed change can't be read now."""


class Guard:
    """The timer of one run, armed not before the first action that may cut the host off."""

    def __init__(
        self, host: WritableHost, journal: Journal, stored: StoredWanted, actions: Sequence[Action], seconds: int
    ) -> None:
        self.armed = False
        self._host = host
        self._actions = cuts_off(actions) if seconds else []
        concerns = {action.concern for action in self._actions}
        self._wanted = {concern: stored.get(concern) for concern in sorted(concerns)}
        places = {action.key for action in self._actions}
        self._entries = [entry for entry in journal.entries() if entry.key in places]
        self._seconds = seconds
        if self._actions:
            demand_none_waits(host)
            self._python = _demand_python(host)

    def arm_before(self, actions: Sequence[Action]) -> None:
        """Arm the timer when one of these actions may cut the host off.

        Raises NearmetalError when it can't be armed: the actions must not be done then, and nothing of it is left.
        """
        if self.armed or not self._actions or not cuts_off(actions):
            return
        try:
            self._arm()
        except NearmetalError as error:
            with suppress(NearmetalError):
                disarm(self._host)
            raise NearmetalError(f"no dead-man timer could be armed, so nothing was changed: {error}") from None
        self.armed = True

    def _arm(self) -> None:
        """Start the timer, then write the file.

        The timer does nothing without the file, but with the file alone nobody would take the change back.
        """
        devices = [place_of(self._host, action.key).identity() for action in self._actions]
        armed = _Armed(self._host.boot_id(), self._actions, devices, self._entries, self._wanted)
        store.remove_file(self._host, FIRED)
        TIMER.arm(self._host, VERSION, self._python, self._seconds)
        _write(self._host, armed)

    def end(self) -> bool:
        """Disarm the timer if each place is as it was before the run. Returns whether it still waits.

        What the run couldn't undo is left to the timer, which tries until it can.
        """
        if self.armed and not all(_is_undone(self._host, action) for action in self._actions):
            return True
        if self.armed:
            with suppress(NearmetalError):  # the timer will find nothing to put back
                disarm(self._host)
        return False


def demand_none_waits(host: WritableHost) -> None:
    """Raise NearmetalError while a change waits to be confirmed: the timer would take a second one back, too."""
    if is_armed(host):
        raise NearmetalError(
            "an earlier network change still waits to be confirmed: run `nearmetal confirm` on the host over a new"
            " connection, or wait until the timer has taken the change back, and run again"
        )


def _demand_python(host: WritableHost) -> str:
    python = agent_timer.python_of(host)
    if not python:
        raise NearmetalError(
            "no dead-man timer can be armed without systemd and a Python 3.7 at boot: set confirm_within: 0 to go"
            " without confirmation"
        )
    return python


def waits(host: WritableHost) -> bool:
    """Whether a change of this boot waits to be confirmed; False when the file that records it is damaged."""
    with suppress(Damaged):
        return is_armed(host)
    return False


def damage(host: WritableHost) -> str:
    """What is wrong with the file of the armed change, and what to do; empty when nothing is."""
    try:
        _armed(host)
    except Damaged as error:
        return str(error)
    return ""


def confirm(host: WritableHost) -> bool:
    """Disarm the timer, because the host is reachable. Returns whether it was armed; raises like `can_confirm`."""
    with store.lock(host, PATIENCE):
        armed = can_confirm(host)
        if armed:
            disarm(host)
        return armed


def can_confirm(host: WritableHost) -> bool:
    """Whether a change of this boot waits to be confirmed. Raises NearmetalError when it is too late to confirm it."""
    armed = is_armed(host)
    if armed and host.exists(FIRED):
        raise NearmetalError(
            "too late to confirm: the dead-man timer is putting the earlier values back; then run again"
        )
    return armed


def is_armed(host: WritableHost) -> bool:
    """Whether the timer has a change of this boot to take back. Raises Damaged when the file can't tell."""
    armed = _armed(host)
    return armed is not None and armed.boot_id == host.boot_id()


def disarm(host: WritableHost) -> None:
    """Disarm the timer; the caller holds the lock.

    The file is removed first, so that a timer that can't be stopped finds nothing to do, and then ends. The agent is
    removed when nothing starts it any more. Raises NearmetalError when the file can't be removed.
    """
    _forget(host)
    with suppress(NearmetalError):
        if host.exists(AGENT):
            TIMER.disarm(host)
        store.remove_file(host, FIRED)


def give_up(host: WritableHost, concerns: Optional[Container[str]]) -> None:
    """Put nothing of these concerns back any more (None: of none), because they are restored.

    The caller holds the lock. Otherwise the timer would bring back what an earlier run had tuned. Raises NearmetalError
    when the file can't be changed; a damaged one puts nothing back anyway.
    """
    with suppress(Damaged):
        armed = _armed(host)
        if armed is None:
            return
        stay = {action.concern for action in armed.actions if concerns is not None and action.concern not in concerns}
        pairs = [(action, device) for action, device in zip(armed.actions, armed.devices) if action.concern in stay]
        if not pairs:
            disarm(host)
        elif len(pairs) < len(armed.actions):
            entries = [entry for entry in armed.entries if entry.concern in stay]
            wanted = {concern: stored for concern, stored in armed.wanted.items() if concern in stay}
            actions, devices = zip(*pairs)
            _write(host, _Armed(armed.boot_id, actions, devices, entries, wanted))


def unconfirmed(host: WritableHost) -> List[str]:
    """The concerns whose changes nobody had confirmed when the host was rebooted."""
    with suppress(Damaged):
        armed = _armed(host)
        if armed and armed.boot_id != host.boot_id():
            return sorted({action.concern for action in armed.actions})
    return []


def expire(host: WritableHost, stored: StoredWanted) -> None:
    """After a reboot, which ended the timer, store again what was confirmed last; the caller holds the lock."""
    concerns = unconfirmed(host)
    armed = _armed(host) if concerns and not stored.damage else None
    if armed is not None:
        _want_again(stored, armed, concerns)
        _forget(host)


def complete_killed(host: WritableHost, journal: Journal) -> None:
    """Keep the originals that a killed run of the timer couldn't record, and remove the agent of one that armed it.

    The caller holds the lock. Raises NearmetalError while the originals can't be recorded.
    """
    with suppress(Damaged):
        armed = _armed(host) if host.exists(FIRED) else None
        if armed is not None:
            journal.keep(armed.entries)
    if host.exists(AGENT) and not host.exists(ARMED):
        with suppress(NearmetalError):
            disarm(host)


def fire(host: WritableHost) -> List[str]:
    """Put back the earlier values, and what was wanted then. Returns what was done, in sentences.

    A device that came to a place since then is left as it is. Raises NearmetalError when something couldn't be put
    back: the timer tries again, unless nothing says what to put back.
    """
    with store.lock(host), ending.uninterrupted():
        try:
            armed = _armed(host)
        except _Unread:
            raise  # a disk error may be temporary
        except Damaged:
            with suppress(NearmetalError):
                agent_timer.stop(host, TIMER.unit)
            raise
        if armed is None:
            disarm(host)
            return []
        replaced = [
            action
            for action, device in zip(armed.actions, armed.devices)
            if place_of(host, action.key).exchanged(device)
        ]
        present = [
            action for action in armed.actions if action not in replaced and not place_of(host, action.key).detached()
        ]
        changed = [action for action in present if place_of(host, action.key).read() != action.before]
        with suppress(NearmetalError):  # should this process be killed, nobody confirms, and the next run completes it
            store.replace_file(host, FIRED, b"", mode=0o600, folder_mode=0o755)
        trouble = roll_back(host, changed)  # first: a full disk may refuse the records, and the lock keeps others out
        failures = [f"could not put everything back: {trouble}"] if trouble else []
        try:
            _record(host, armed, [] if trouble else present)
        except NearmetalError as error:
            failures.append(f"could not record that the earlier values are back: {error}")
        if failures:
            raise NearmetalError(f"the dead-man timer {' and '.join(failures)}")
        disarm(host)
        return [*(_put_back(action) for action in changed), *(_left_alone(host, action) for action in replaced)]


def _record(host: WritableHost, armed: _Armed, restored: Sequence[Action]) -> None:
    """Store again what was wanted and journaled before the run; the places of `restored` are as they were then.

    This is needed even when this attempt changed nothing, because an earlier one may have ended before it.
    """
    stored = StoredWanted(host)
    if not stored.damage:  # the unit plans nothing from a damaged file
        _want_again(stored, armed, {action.concern for action in armed.actions})
    platform = observe(host, ("platform",)).platform
    journal = Journal(host, platform.instance_id if platform else None)
    if not journal.damage:
        journal.keep(armed.entries)  # the run has forgotten those whose originals it brought back
        journal.settle([action._replace(after=action.before) for action in restored])


def _put_back(action: Action) -> str:
    return (
        f"{action.concern}.{action.knob}: nobody confirmed the change, so {action.what} {action.where} has its earlier"
        " value again"
    )


def _left_alone(host: WritableHost, action: Action) -> str:
    name = place_of(host, action.key).device_name()
    return (
        f"{action.concern}.{action.knob}: nobody confirmed the change, but {name} is not the device that was at"
        f" {action.where} then: it is left as it is"
    )


def _as_data(stored: Optional[Stored]) -> Any:
    return as_data(stored) if stored and not stored.damage else None


def _is_undone(host: WritableHost, action: Action) -> bool:
    place = place_of(host, action.key)
    return place.detached() or place.values.same(place.read(), action.before)


def _want_again(stored: StoredWanted, armed: _Armed, concerns: Iterable[str]) -> None:
    wanted = stored.everything()
    for concern in concerns:
        earlier = armed.wanted.get(concern)
        if earlier is None:
            wanted.pop(concern, None)
        else:
            wanted[concern] = earlier
    stored.reset(wanted)


def _armed(host: WritableHost) -> Optional[_Armed]:
    """The armed change, checked like any input; None when there is none. Raises Damaged."""
    try:
        data = store.read_file(host, ARMED)
    except NearmetalError as error:
        raise _Unread(str(error)) from None
    if data is None:
        return None
    try:
        armed = json_text.parse(data.decode("utf-8"))
        actions = [_action(raw) for raw in armed["actions"]]
        # Older versions wrote neither devices nor entries of the journal, nor what was wanted before.
        devices = [str(device) for device in armed.get("devices", [""] * len(actions))]
        if len(devices) != len(actions):
            raise NearmetalError("actions and devices differ in number")
        entries = [entry_of(raw) for raw in armed.get("journal", [])]
        wanted = {str(name): stored_of(raw) if raw else None for name, raw in armed.get("wanted", {}).items()}
        return _Armed(str(armed["boot_id"]), actions, devices, entries, wanted)
    except json_text.DAMAGE as error:
        raise Damaged(
            f"{ARMED} isn't what nearmetal wrote ({json_text.reason(error)}), so nobody can know what to put back:"
            " check that the network is as you want it, then remove the file"
        ) from None


def _action(raw: Any) -> Action:
    action = Action(**raw)
    lever_of(action.what).check(action.where, action.before)
    return action


def _write(host: WritableHost, armed: _Armed) -> None:
    data = {
        "boot_id": armed.boot_id,
        "actions": [action.as_dict() for action in armed.actions],
        "devices": armed.devices,
        "journal": [data_of(entry) for entry in armed.entries],
        "wanted": {concern: _as_data(stored) for concern, stored in armed.wanted.items()},
    }
    store.replace_file(host, ARMED, json.dumps(data).encode(), mode=0o600, folder_mode=0o700)


def _forget(host: WritableHost) -> None:
    store.remove_file(host, ARMED)
    store.remove_empty_data(host)
