# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How each status of a finding looks and which one speaks for a cell. PRIVATE to the collection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterable

from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import STATUSES

FAILED = "failed"  # not a status of a finding: the concern ended with an error


@dataclass(frozen=True)
class Look:
    """One status: its mark of one column, its words, and its colour in Ansible's names."""

    name: str
    mark: str
    words: str
    color: str
    open: bool  # the operator may want to do something about it


# In the order of who speaks for a cell: the first one present.
LOOKS = (
    Look(FAILED, "✗", "failed", "red", True),
    Look("would_change", "●", "would change", "yellow", True),
    Look("needs_reboot", "↻", "waiting for a reboot", "purple", True),
    Look("needs_restart", "⟲", "waiting for a restart", "purple", True),
    Look("refused", "!", "refused", "bright red", True),
    Look("unknown", "?", "unknown", "bright yellow", True),
    Look("changed", "◆", "changed", "green", False),
    Look("unchangeable", "■", "unchangeable", "cyan", False),
    Look("advice", "i", "advice", "bright blue", True),
    Look("waived", "~", "waived", "dark gray", False),
    Look("ok", "✓", "ok", "green", False),
    Look("not_applicable", "–", "not applicable", "dark gray", False),
)
BY_NAME = {look.name: look for look in LOOKS}
ORDER = {look.name: number for number, look in enumerate(LOOKS)}
OPEN = tuple(look.name for look in LOOKS if look.open)
# What `audit_fail_on` may name: every status, and a concern that ended with an error.
FAILABLE = (*STATUSES, FAILED)


def worst(statuses: Iterable[str]) -> str:
    """The status that speaks for all; empty when there is none."""
    return min(statuses, key=lambda status: ORDER[status], default="")
