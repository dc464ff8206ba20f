# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The errors that an operator reads. PRIVATE to the collection."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ._words import LINE, several


class NearmetalError(Exception):
    """What went wrong and what to do about it, in one sentence for the operator.

    Every layer raises only this class; a module's main() turns it into fail_json once.
    """


class Mistakes:
    """Gathers what checks refuse, each in a `with` of its own, so that an operator reads of all of it at once."""

    def __init__(self, found: Iterable[str] = ()) -> None:
        self.found = list(found)

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: object, _trace: object) -> bool:
        if kind is NearmetalError:
            self.found += str(error).split(LINE)[1:] or [str(error)]
        return kind is NearmetalError

    def of(self, work: Callable[..., Any], *given: Any) -> Any:
        """What this answers; nothing if it refuses what it was given."""
        with self:
            return work(*given)
        return {}

    def require_none(self) -> None:
        """Raise NearmetalError if a check refused something."""
        if self.found:
            raise NearmetalError(several(self.found))


class OfHost(NearmetalError):
    """What the host remembers of earlier runs, and no option, keeps this one from planning."""


class Damaged(OfHost):
    """A file isn't as nearmetal wrote it: the concerns that need it can't be applied; the others go on."""


class Absent(NearmetalError):
    """There is no such file or folder: an error only for those who need it."""


class Unanswered(NearmetalError):
    """A tool of the host didn't end in time: what else it may be asked isn't worth waiting for."""


class Declined(NearmetalError):
    """A driver refuses values, which `answer` says. `places` (lever, where) are those that a plan can leave out."""

    def __init__(self, sentence: str, places: Iterable[tuple[str, str]] = (), answer: str = "") -> None:
        super().__init__(sentence)
        self.answer = answer or sentence
        self.places: frozenset[tuple[str, str]] = frozenset(places)
