# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gains that `prove` measured, for findings about the same change: docs/measured.md. Pure. PRIVATE to the collection.

Only gains are here. What was measured without a gain is on that page.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Figure(NamedTuple):
    """What one change brought on one machine."""

    knob: str  # concern.option
    before: str
    after: str
    words: str  # with the interval, as prove printed it
    day: str
    machine: str

    @property
    def gain(self) -> str:
        """The figure with its source, for a finding."""
        return f"measured on {self.machine}, on {self.day}: {self.words}"


_GUEST = "a KVM guest with Linux 6.18, not on EC2"
FIGURES = (
    Figure(
        "clocksource.source",
        "kvm-clock",
        "tsc",
        "a read took 17.1 % longer on kvm-clock (+10.6 to +24.9)",
        "23 Nov 2026",
        _GUEST,
    ),
)


def gain_of(knob: str, before: Any, after: Any) -> str:
    """What this change brought where it was measured; empty if it wasn't."""
    change = (knob, str(before), str(after))
    return next((figure.gain for figure in FIGURES if change == figure[:3]), "")
