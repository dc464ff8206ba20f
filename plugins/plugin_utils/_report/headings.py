# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nine headings of AWS's talk of 2017, which group the concerns in a report, and how statuses look. PRIVATE."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Dict, Iterable, List, NamedTuple, Tuple

from ...module_utils._concerns.registry import HEADINGS
from ...module_utils._plan import STATUSES
from ...module_utils._words import status_words

# Each heading lists what isn't planned on a host: what only the AWS API knows, and parts of the report itself. A
# concern of a host has its heading in the registry.
BY_API = frozenset({"cpu_credits", "ebs", "enhanced_networking", "network_interfaces", "placement", "sizing"})
FAILED = "failed"  # not a status of a finding: the concern ended with an error
# What `audit_fail_on` may name: every status, and a concern that ended with an error.
FAILABLE = (*STATUSES, FAILED)


class Heading(NamedTuple):
    """One line of the summary, with the concerns below it."""

    number: int
    title: str
    concerns: Tuple[str, ...]


_HEADINGS = (
    Heading(1, "Newest generation, HVM", ("platform", "placement", "instance_info")),
    Heading(2, "TSC as clock source", ()),
    Heading(3, "C-states and P-states", ()),
    Heading(4, "CPU credits", ("cpu_credits",)),
    Heading(5, "Operating system and kernel", ()),
    Heading(6, "NUMA, threads and memory", ()),
    Heading(7, "Block devices and persistent grants", ("ebs",)),
    Heading(8, "Enhanced networking", ("enhanced_networking", "network_interfaces", "allowances")),
    Heading(9, "Profile your application", ("profile", "prove", "sizing")),
)
OTHER = Heading(10, "Other", ())


@lru_cache(maxsize=1)
def headings() -> Tuple[Heading, ...]:
    """The nine headings, each with its concerns."""
    return tuple(
        heading._replace(
            concerns=(
                *(name for name, number in HEADINGS.items() if number == heading.number),
                *heading.concerns,
            )
        )
        for heading in _HEADINGS
    )


@lru_cache(maxsize=1)
def _by_concern() -> Dict[str, Heading]:
    """Concern → its heading, in the order of a report."""
    return {concern: heading for heading in headings() for concern in heading.concerns}


def heading_of(concern: str) -> Heading:
    """The heading under which a concern stands; a concern that the talk doesn't mention stands under Other."""
    return _by_concern().get(concern, OTHER)


def in_order(concerns: Iterable[str]) -> List[str]:
    """The concerns in the order of the headings, then by name."""
    requested, known = set(concerns), _by_concern()
    return [concern for concern in known if concern in requested] + sorted(requested - known.keys())


def under_headings(concerns: Iterable[str]) -> List[Tuple[Heading, List[str]]]:
    """Each heading, Other at last, with the concerns that stand under it."""
    named = list(concerns)
    return [(heading, [name for name in named if heading_of(name) == heading]) for heading in (*headings(), OTHER)]


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


def worst(statuses: Iterable[str]) -> str:
    """The status that a cell shows for all of these; empty without any."""
    return min(statuses, key=lambda status: ORDER[status], default="")
