# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nine headings of AWS's talk of 2017, under which a report groups the concerns. PRIVATE to the collection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterable, List, Tuple


@dataclass(frozen=True)
class Heading:
    """One line of the summary of S0, with the concerns that answer it."""

    number: int
    title: str
    concerns: Tuple[str, ...]


HEADINGS = (
    Heading(1, "Newest generation, HVM", ("platform", "placement")),
    Heading(2, "TSC as clock source", ("clocksource",)),
    Heading(3, "C-states and P-states", ("cpu_power",)),
    Heading(4, "CPU credits", ("cpu_credits",)),
    Heading(5, "Operating system and kernel", ("kernel_check",)),
    Heading(6, "NUMA, threads and memory", ("numa", "smt", "hugepages")),
    Heading(7, "Block devices and persistent grants", ("blkfront_check", "block_storage", "ebs")),
    Heading(
        8,
        "Enhanced networking",
        ("enhanced_networking", "network_interfaces", "network_irq", "network_stack", "allowances"),
    ),
    Heading(9, "Profile your application", ("profiling", "prove")),
)
# What only the AWS API knows: each of these is changed by its own role.
BY_API = frozenset({"cpu_credits", "ebs", "enhanced_networking", "network_interfaces", "placement"})
OTHER = Heading(10, "Other", ())
_NUMBER = {concern: heading.number for heading in HEADINGS for concern in heading.concerns}
_PLACE = {concern: (heading.number, place) for heading in HEADINGS for place, concern in enumerate(heading.concerns)}


def heading_of(concern: str) -> Heading:
    """The heading under which a concern stands; a concern that S0 doesn't know stands under Other."""
    number = _NUMBER.get(concern, OTHER.number)
    return OTHER if number == OTHER.number else HEADINGS[number - 1]


def in_order(concerns: Iterable[str]) -> List[str]:
    """The concerns in the order of the headings, then by name."""
    return sorted(set(concerns), key=lambda concern: (*_PLACE.get(concern, (OTHER.number, 0)), concern))
