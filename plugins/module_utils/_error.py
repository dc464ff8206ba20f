# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The errors that an operator reads. PRIVATE to the collection."""

from __future__ import annotations

from collections.abc import Iterable


class NearmetalError(Exception):
    """What went wrong and what to do about it, in one sentence for the operator.

    Every layer raises only this class; a module's main() turns it into fail_json once.
    """


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
