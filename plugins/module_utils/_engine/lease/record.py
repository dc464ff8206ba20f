# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lease: what a run has set comes back at its time, unless somebody goes on. PRIVATE to the collection.

A lease is a file that says what comes back, and a timer that starts the agent to bring it back. The file decides: it is
written when the timer runs, and removed before the timer, which finds nothing to do then. A change of the network is on
lease until somebody confirms it, what prove compares until the next step of prove, and what a rollout tunes until it is
decided. A host has one lease of a kind at a time.
"""

from __future__ import annotations

import json
from contextlib import suppress
from functools import partial
from typing import Any, Callable, Mapping, NamedTuple, Optional, Tuple

from ..._error import Damaged, NearmetalError
from ..._facts.json_data import json_data
from ..._facts.state_files import EXPERIMENT, REBOOTS
from ..._host import store
from ..._host.agent_timer import AgentTimer
from ..._host.host import WritableHost
from ..._levers.registry import lever_of
from ..._memory.entry import Entry, data_of, entry_of
from ..._memory.stored import Stored, as_data, earlier_of
from ..._parse import json_text
from ..._plan import Action
from ..._version import VERSION

PATIENCE = 60  # seconds that a confirmation, or a step of prove, waits for an earlier run
UNTUNED, TUNED = "untuned", "tuned"


class Kind(NamedTuple):
    """The leases of one kind: where one is kept, and what its file says."""

    path: str
    called: str  # the timer, in a message
    timer: AgentTimer
    fields: Mapping[str, Callable[[Any], Any]]  # name → its value, of that in the file
    damage: str  # the message about a file that nearmetal didn't write

    @property
    def fired(self) -> str:
        """A mark that the timer has begun, in memory, where neither a full nor a read-only disk refuses it."""
        return f"{store.RUN}/{self.timer.name}.fired"

    def is_present(self, host: WritableHost) -> bool:
        """Whether a lease, or the timer of one that is gone, is on this host."""
        return host.exists(self.path) or host.exists(self.timer.agent)

    def damaged(self, error: Exception) -> Damaged:
        """What to do about a file of which a reader says this."""
        return Damaged(f"{self.path} {self.damage.format(json_text.reason(error))}")


class Lease(NamedTuple):
    """What comes back, and who may go on."""

    kind: Kind
    run: str = ""  # of prove
    boot_id: str = ""  # it ends with this boot; empty: it outlives boots
    abandon_after: int = 0  # seconds; 0: it has no timer
    python: str = ""  # of the timer
    ending: bool = False  # it is being taken back, and nothing else goes on
    wanted: Mapping[str, Optional[Stored]] = {}  # concern → what was wanted before; of prove, while a tuning is kept
    # A change is undone, whatever the journal says.
    actions: Tuple[Action, ...] = ()
    devices: Tuple[str, ...] = ()  # the identity of each action's device
    journal: Tuple[Entry, ...] = ()  # the entries of these places
    # What is switched comes back by the journal.
    concerns: Tuple[str, ...] = ()
    knobs: Tuple[str, ...] = ()  # `concern.option`; empty: all of the concerns
    owned: Tuple[str, ...] = ()  # `concern.option` of what `tune` leaves to another owner
    unfelt: Tuple[str, ...] = ()  # `concern.option` of what a load right after a switch may not show
    earlier: Tuple[Action, ...] = ()  # from the originals to what nearmetal had set before
    order: Tuple[Tuple[str, str], ...] = ()  # the journal's places, in its order before
    # What is rebooted comes back by a restore of everything, and a reboot if this boot began tuned.
    state: str = UNTUNED  # what the files on disk hold
    written_in: str = ""  # the boot id when that was written; a boot that began before it has another state
    booted_tuned: str = ""  # the last boot that is known to have begun with the tuned files
    own: Mapping[str, Any] = {}  # what its owner keeps beside it

    def selects(self, concern: str, knob: str) -> bool:
        """Whether the knob is switched."""
        name, chosen = f"{concern}.{knob}", concern in self.concerns
        return chosen and name not in (*self.owned, *self.unfelt) and (not self.knobs or name in self.knobs)


class Unread(Damaged):
    """The file of a lease can't be read now."""


def read(host: WritableHost, kind: Kind) -> Optional[Lease]:
    """The lease, of whichever boot, checked like any input; None when there is none. Raises Damaged."""
    try:
        data = store.read_file(host, kind.path)
    except NearmetalError as error:
        raise Unread(str(error)) from None
    if data is None:
        return None
    try:
        raw = json_text.parse(data.decode("utf-8"))
        if kind is SWITCHED:
            raw.setdefault("unfelt", [])  # 0.2.0 wrote none
        lease = Lease(kind, **{name: read_field(raw.pop(name)) for name, read_field in kind.fields.items()}, own=raw)
        if len(lease.devices) != len(lease.actions):
            raise NearmetalError("actions and devices differ in number")
        return lease
    except json_text.DAMAGE as error:
        raise kind.damaged(error) from None


def present(host: WritableHost, kind: Kind) -> Optional[Lease]:
    """The lease, if it is of this boot. Raises Damaged."""
    lease = read(host, kind)
    return lease if lease is not None and lease.boot_id in ("", host.boot_id()) else None


def write(host: WritableHost, lease: Lease) -> None:
    """Write the file, which is in effect from now on."""
    content = {**lease.own, **{name: json_data(getattr(lease, name)) for name in lease.kind.fields}}
    if "journal" in content:
        content["journal"] = [data_of(entry) for entry in lease.journal]
    if "wanted" in content:
        wanted = {concern: as_data(stored) if stored else None for concern, stored in lease.wanted.items()}
        content["wanted"] = wanted or None
    mode = 0o700 if lease.kind.path.startswith(store.DATA) else 0o755
    store.replace_file(host, lease.kind.path, json.dumps(content).encode(), mode=0o600, folder_mode=mode)


def arm(host: WritableHost, lease: Lease) -> None:
    """Start the timer, then write the file: with the file alone nobody would bring anything back.

    Raises NearmetalError when that isn't possible: nothing of it is left, and nothing may be set.
    """
    kind = lease.kind
    try:
        store.remove_file(host, kind.fired)
        if lease.abandon_after:
            kind.timer.arm(host, VERSION, lease.python, lease.abandon_after)
        write(host, lease)
    except NearmetalError as error:
        with suppress(NearmetalError):
            release(host, kind)
        raise NearmetalError(f"no {kind.called} could be armed, so nothing was changed: {error}") from None


def renew(host: WritableHost, lease: Lease) -> None:
    """Let the timer start to count again."""
    if lease.abandon_after:
        lease.kind.timer.restart(host)


def release(host: WritableHost, kind: Kind) -> None:
    """End the lease of a host that stays as it is; the caller holds the lock.

    Raises NearmetalError when the file can't be removed. A timer that can't be stopped finds nothing to do, and ends.
    """
    store.remove_file(host, kind.path)
    store.remove_file(host, store.temporary_path(kind.path))  # left by a run that was killed
    with suppress(NearmetalError):
        store.remove_file(host, kind.fired)
        if host.exists(kind.timer.agent):
            kind.timer.disarm(host)
    store.remove_empty(host, store.DATA)


def read_texts(raw: Any) -> Tuple[str, ...]:
    """Names in a file."""
    return tuple(map(str, raw))


def read_actions(raw: Any, written: str = "after") -> Tuple[Action, ...]:
    """Actions in a file, whose values that may be `written` are checked."""
    actions = tuple(Action(**fields) for fields in raw)
    for action in actions:
        lever_of(action.what).check(action.where, getattr(action, written))
    return actions


def _read_state(raw: Any) -> str:
    if raw not in (UNTUNED, TUNED):
        raise NearmetalError("its state is neither untuned nor tuned")
    return str(raw)


_PURPOSE = "Take back what nearmetal.ec2.prove compares, because no step of it came for a while"
_OF_PROVE: Mapping[str, Callable[[Any], Any]] = {
    "run": str,
    "abandon_after": int,
    "concerns": read_texts,
    "ending": bool,
}
# A change that nobody has confirmed. It is in /var/lib, because after a reboot nobody may set it again.
CHANGE = Kind(
    f"{store.DATA}/dead-man.json",
    "dead-man timer",
    AgentTimer("dead-man", "Put back the network change that nobody confirmed"),
    {
        "boot_id": str,
        "actions": partial(read_actions, written="before"),
        "devices": read_texts,
        "journal": lambda raw: tuple(map(entry_of, raw)),
        "wanted": earlier_of,
    },
    "isn't what nearmetal wrote ({}), so nobody can know what to put back: check that the network is as you want it,"
    " then remove the file",
)
# The values of two states between which prove switches. A reboot ends it.
SWITCHED = Kind(
    EXPERIMENT,
    "timer",
    AgentTimer("prove", _PURPOSE),
    {
        **_OF_PROVE,
        "boot_id": str,
        "python": str,
        "knobs": read_texts,
        "owned": read_texts,
        "unfelt": read_texts,
        "earlier": read_actions,
        "order": lambda raw: tuple((str(what), str(where)) for what, where in raw),
        "wanted": earlier_of,
    },
    "isn't what prove wrote ({}): remove it, and run restore, which brings the originals back",
)
# All that nearmetal keeps on a host that prove reboots between two states.
REBOOTED = Kind(
    REBOOTS,
    "timer",
    AgentTimer("prove", _PURPOSE, store.DATA),
    {**_OF_PROVE, "state": _read_state, "written_in": str, "booted_tuned": str},
    "isn't what prove wrote ({}): run restore of everything, without naming concerns, and reboot the host, which brings"
    " the originals back",
)
# All that a rollout tuned on a host on which it hasn't decided yet.
ROLLED = Kind(
    f"{store.DATA}/rollout.json",
    "timer",
    AgentTimer("rollout", "Take back what nearmetal.ec2.rollout tuned, because it never decided on it", store.DATA),
    {"run": str, "abandon_after": int},
    "isn't what rollout wrote ({}): remove it, and run restore, which brings the originals back",
)
