# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How each status of a finding looks, and which status a cell shows. PRIVATE to the collection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterable

from ...module_utils._plan import STATUSES
from ...module_utils._words import status_words

FAILED = "failed"  # not a status of a finding: the concern ended with an error


@dataclass(frozen=True)
class Look:
    """One status: its mark, one column wide, and its color by Ansible's name."""

    name: str
    mark: str
    color: str
    open: bool  # the operator may want to do something about it

    @property
    def words(self) -> str:
        """The status as an operator reads it, the same as in `nearmetal status`."""
        return status_words(self.name)

    def counted(self, count: int) -> str:
        """How many findings have it: "1 needs a reboot", "4 need a reboot"."""
        return f"{count:,} {status_words(self.name, count)}"


# A cell shows the first of these that is present.
LOOKS = (
    Look(FAILED, "✗", "red", True),
    Look("would_change", "●", "yellow", True),
    Look("needs_reboot", "↻", "purple", True),
    Look("needs_restart", "⟲", "purple", True),
    Look("refused", "!", "bright red", True),
    Look("unknown", "?", "bright yellow", True),
    Look("changed", "◆", "green", False),
    Look("unchangeable", "■", "cyan", False),
    Look("advice", "i", "bright blue", True),
    Look("waived", "~", "dark gray", False),
    Look("ok", "✓", "green", False),
    Look("not_applicable", "–", "dark gray", False),
)
BY_NAME = {look.name: look for look in LOOKS}
ORDER = {look.name: number for number, look in enumerate(LOOKS)}
OPEN = tuple(look.name for look in LOOKS if look.open)
# What `audit_fail_on` may name: every status, and a concern that ended with an error.
FAILABLE = (*STATUSES, FAILED)


def worst(statuses: Iterable[str]) -> str:
    """The status that a cell shows for all of these; empty without any."""
    return min(statuses, key=lambda status: ORDER[status], default="")
