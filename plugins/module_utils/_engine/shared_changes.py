# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes that all concerns of a run share in one write: kernel arguments. PRIVATE to the collection.

They are done first, because they cost the most (GRUB's configuration is made again),
fail the most often (a full /boot), and change nothing that runs.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Iterable, List, Sequence, Tuple

from .._error import NearmetalError
from .._host.host import WritableHost
from .._levers.registry import lever_of, place_of
from .._memory.entry import Entry
from .._memory.journal import Journal
from .._parse.kernel_arguments import Claim, agree
from .._plan import Action
from .apply import apply, roll_back


def split(actions: Iterable[Action]) -> Tuple[List[Action], List[Action]]:
    """The actions of shared levers, and all others."""
    shared: List[Action] = []
    unshared: List[Action] = []
    for action in actions:
        (shared if lever_of(action.what).shared else unshared).append(action)
    return shared, unshared


def require_agreement(journal: Journal, actions: Sequence[Action]) -> None:
    """Raise NearmetalError, naming both concerns, when two of them want different values of one kernel argument."""
    shared, _unshared = split(actions)
    concern_of = {action.key: action.concern for action in shared}
    arguments = [
        Claim(f"{entry.concern}.{entry.knob}", str(entry.set_values[-1]))
        for entry in journal.entries()
        if lever_of(entry.what).shared
        and entry.set_values[-1] is not None
        and concern_of.get(entry.key) != entry.concern
    ]
    arguments += [
        Claim(f"{action.concern}.{action.knob}", str(action.after)) for action in shared if action.after is not None
    ]
    agree(arguments)


def rehearse(host: WritableHost, actions: Sequence[Action]) -> str:
    """Why the shared writes of a run are known to fail, as the writes themselves find it; empty when they aren't."""
    shared, _unshared = split(actions)
    try:
        for what in dict.fromkeys(action.what for action in shared):
            place_of(host, (what, "")).rehearse(
                {action.where: action.after for action in shared if action.what == what}
            )
    except NearmetalError as error:
        return str(error)
    return ""


class SharedChanges:
    """The shared changes of one run: done at once, but taken back for each concern whose other changes fail."""

    def __init__(self, host: WritableHost, journal: Journal, actions: Sequence[Action]) -> None:
        self._host = host
        self._journal = journal
        self._earlier = journal.entries()
        self.done, _unshared = split(actions)
        self.error = ""
        self.unrestored: List[Entry] = []  # of changes that couldn't be undone
        try:
            if self.done:
                apply(host, journal, self.done, tuple)
        except NearmetalError as error:
            self.error = str(error)
            self._concerns = {action.concern for action in self.done}
            self.unrestored = [entry for entry in journal.entries() if entry not in self._earlier]
            self.done = []

    def require(self, concern: str) -> None:
        """Raise NearmetalError when the changes of this concern couldn't be done."""
        if self.error and concern in self._concerns:
            raise NearmetalError(self.error)

    def take_back(self, concern: str) -> str:
        """Undo what was done for a concern that failed. Returns the end of its error: what couldn't be undone."""
        undone = [action for action in self.done if action.concern == concern]
        if not undone:
            return ""
        self.done = [action for action in self.done if action.concern != concern]
        trouble = roll_back(self._host, undone)
        places = {action.key for action in undone}
        if trouble:
            with suppress(NearmetalError):  # they are in the journal already
                self._journal.keep(self._earlier)
            self.unrestored += [entry for entry in self._journal.entries() if entry.key in places]
            return f"; and undoing it failed: {trouble}; the journal keeps the originals"
        kept = [entry for entry in self._journal.entries() if entry.key not in places]
        with suppress(NearmetalError):  # an entry too many does no harm: its place has its original value again
            self._journal.reset(kept + [entry for entry in self._earlier if entry.key in places])
        return ""
