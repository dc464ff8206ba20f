# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `prove` measured, for findings about the same change: docs/measured.md. Pure. PRIVATE to the collection."""

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
    gains: bool = True  # False: prove found that nothing changes, or no more than it names

    @property
    def gain(self) -> str:
        """The figure with its source, for a finding."""
        return f"{'measured' if self.gains else NO_GAIN} on {self.machine}, on {self.day}: {self.words}"


NO_GAIN = "no gain measured"  # the beginning of such a figure
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
    Figure(
        "hugepages.thp",
        "madvise",
        "never",
        "the writes of a saving Redis changed by 0.0 % (−4.6 to +5.0)",
        "26 Nov 2026",
        _GUEST,
        gains=False,
    ),
    Figure(
        "block_storage.scheduler",
        "mq-deadline",
        "none",
        "random reads changed by 0.8 % (−2.9 to +4.6)",
        "26 Nov 2026",
        _GUEST,
        gains=False,
    ),
)


def gain_of(knob: str, before: Any, after: Any) -> str:
    """What this change brought where it was measured; empty if it wasn't."""
    change = (knob, str(before), str(after))
    return next((figure.gain for figure in FIGURES if change == figure[:3]), "")
