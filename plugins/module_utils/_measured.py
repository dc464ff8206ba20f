# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What we measured, for findings about the same change: docs/measured.md. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, NamedTuple, Tuple


class Figure(NamedTuple):
    """What one change brought on one machine."""

    knob: str  # concern.option, or a workload
    before: str
    after: str
    words: str  # with the interval, as the page has it
    day: str
    machine: str
    gains: bool = True
    trade: bool = False  # one figure gains what another loses
    loses: bool = False  # the whole interval is a loss

    @property
    def gain(self) -> str:
        """The figure with its source, for a finding."""
        lead = LOSS if self.loses else TRADE if self.trade else "measured" if self.gains else NO_GAIN
        return f"{lead} on {self.machine}, on {self.day}: {self.words}"


# The beginnings of figures that don't speak for a change.
NO_GAIN, TRADE, LOSS = "no gain measured", "a trade measured", "slower when measured"
_GUEST = "a KVM guest with Linux 6.18, not on EC2"
_EMULATED = "an emulated host with Linux 6.1, not on EC2"


def _sad(knob: str, before: str, after: str, words: str, trade: bool = False) -> Figure:
    return Figure(knob, before, after, words, "26 Nov 2026", _GUEST, gains=False, trade=trade)


FIGURES: Tuple[Figure, ...] = (
    Figure(
        "clocksource.source",
        "kvm-clock",
        "tsc",
        "a read took 17.1 % longer on kvm-clock (+10.6 to +24.9)",
        "23 Nov 2026",
        _GUEST,
    ),
    _sad("hugepages.thp", "madvise", "never", "the writes of a saving Redis changed by 0.0 % (−4.6 to +5.0)"),
    _sad(
        "hugepages.thp",
        "always",
        "never",
        "always cost a saving Redis 13.6 % of its writes (−23.7 to −2.9), and made its fork ten times as fast",
        trade=True,
    ),
    _sad(
        "hugepages.thp",
        "always",
        "madvise",
        "the slowest hundredth of a saving Redis's writes took 86.6 % less (−88.3 to −3.9), its fork ten times as long",
        trade=True,
    ),
    _sad("block_storage.scheduler", "mq-deadline", "none", "random reads changed by 0.8 % (−2.9 to +4.6)"),
    _sad(
        "block_storage.read_ahead_kb",
        "8192",
        "128",
        "reads in order changed by 2.8 % (−28.8 to +45.0), which decides nothing",
    ),
    Figure(
        "network_irq.rps",
        "off",
        "on",
        "one queue's packets were 0.76 (0.62 to 0.93) times as many, where one CPU's work already filled the host",
        "22 Nov 2026",
        _EMULATED,
        gains=False,
        loses=True,
    ),
    _sad(
        "in_memory_database",
        "untuned",
        "tuned",
        "all that takes effect at once changed what Redis answers by 1.1 % (−2.2 to +2.1)",
    ),
)


def gain_of(knob: str, before: Any, after: Any) -> str:
    """What this change brought where it was measured; empty if it wasn't. `knob` may be a workload."""
    change = (knob, _word(before), _word(after))
    return next((figure.gain for figure in FIGURES if change == figure[:3]), "")


def _word(value: Any) -> str:
    """A value as the figures have it; of a table whether anything is in it."""
    return ("on" if any(value.values()) else "off") if isinstance(value, dict) else str(value)
