# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a user may set of a proof, checked. Pure. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Any, Dict, Mapping, NamedTuple, Tuple

from ..._error import NearmetalError
from ..._words import choices, shown
from .metrics import NAME, NAME_WORDS

ANSWER_SECONDS = 30  # that one answer of the host may take beside settling and the load
BOOT_SECONDS = 120  # for which it waits, after a reboot, until systemd has started everything
MOST_PAIRS_WITH_REBOOT = 40
FEWEST_PAIRS = 6  # with fewer, not even differences that all point one way are evidence of 20:1
NOT_WORSE = "not_worse"
KEEP = ("better", NOT_WORSE)
COUNTED = 2  # loads of a stay that count at least: the more, the longer is the time between those of both states
GUARD_LIMIT = 5.0  # percent: the loss of a further metric that has to be excluded, where the user sets none
MULTIPLY = "multiply"
SEVERAL = ("average", MULTIPLY)


class Settings(NamedTuple):
    """The settings of one run. They are in the record, so that a run that is resumed keeps them."""

    seed: int  # of the coin that orders the pairs
    pairs: int = 40  # at most so many pairs, those that are repeated not counted
    effect: float = 5.0  # percent; the change that the user would like to see, for the forecast alone
    margin: float = 2.0  # percent; a smaller change counts as the same
    primary: str = ""  # the metric that decides; empty: the first one that the command prints
    keep: str = "better"  # one of KEEP: which verdicts keep the tuning
    seconds: float = 10.0  # that one measurement takes, as the user expects it
    settle: float = 10.0  # seconds between a switch and the load
    abandon_after: int = 900  # seconds without a step, after which the host restores itself; 0: it never does
    timed: bool = False  # the time that the command takes is the figure, not what it prints
    several: str = "average"  # one of SEVERAL: how the evidence of several hosts is put together
    each: bool = False  # of a tuning that is better, compare each concern with the rest too
    reboot: bool = False  # the host is rebooted before each measurement, so that boot settings are compared too
    reboot_within: int = 600  # seconds in which a rebooted host must be back
    guard: Mapping[str, float] = {}  # metric → percent: the loss that has to be excluded, in place of the margin
    soak: int = 1000  # at most so many further loads, in pairs of stays, before the tuning is kept; 0: none
    burn_in: int = 15  # loads after a switch that don't count, in a stay and after a reboot
    wait: int = 300  # at most so many seconds in which nothing is measured, because the host isn't quiet

    @property
    def most_in_stays(self) -> int:
        """How many loads the stays have at most: for each pair beyond a hundred six more."""
        return self.soak + 6 * max(0, self.pairs - 100) if self.soak else 0

    def stay(self, pairs: int) -> int:
        """How many loads a stay has after so many pairs: what took many to show, a few short stays don't."""
        return self.burn_in + max(COUNTED, -(-pairs // 8))

    def limit_of(self, metric: str) -> float:
        """The loss of a metric that doesn't decide, in percent, which has to be excluded before anything is kept."""
        return self.guard.get(metric) or max(self.margin, GUARD_LIMIT)


# The least and the most of each number, and whether it is a whole one.
_BOUNDS: Mapping[str, Tuple[float, float, bool]] = {
    "seed": (0, 2**32 - 1, True),
    "pairs": (FEWEST_PAIRS, 200, True),
    "effect": (0.1, 100, False),
    "soak": (0, 2000, True),
    "burn_in": (1, 40, True),
    "margin": (0.1, 50, False),
    "seconds": (0.1, 3600, False),
    "settle": (0, 600, False),
    "abandon_after": (0, 86400, True),
    "wait": (0, 86400, True),
    "reboot_within": (60, 3600, True),
}


def longest_load(seconds: float) -> float:
    """Seconds that a command may take whose measurements are expected to take `seconds`."""
    return 3 * seconds + 30


def settings_of(options: Mapping[str, Any]) -> Settings:
    """The settings out of options of any origin; an option that is absent has its default, but for `seed`.

    Raises NearmetalError that names the option, its value and what is allowed.
    """
    unknown = sorted(str(name) for name in options if name not in Settings._fields)
    if unknown:
        raise NearmetalError(
            f"{shown(unknown[0])} isn't a setting of prove; the settings are"
            f" {choices(Settings._fields, str(unknown[0]))}"
        )
    if "seed" not in options:
        raise NearmetalError("seed is absent: set a whole number from 0 to 4294967295")
    checked: Dict[str, Any] = {name: _number(name, options[name]) for name in _BOUNDS if name in options}
    for name, allowed in (("keep", KEEP), ("several", SEVERAL)):
        if name in options:
            if options[name] not in allowed:
                raise NearmetalError(f"{name} must be {' or '.join(allowed)}, not {shown(options[name])}")
            checked[name] = options[name]
    for name in ("timed", "each", "reboot"):
        if name in options:
            if not isinstance(options[name], bool):
                raise NearmetalError(f"{name} must be true or false, not {shown(options[name])}")
            checked[name] = options[name]
    if "primary" in options:
        checked["primary"] = _primary(options["primary"])
    if "guard" in options:
        checked["guard"] = _guard(options["guard"])
    settings = Settings(**checked)
    least = 2 * FEWEST_PAIRS * settings.stay(FEWEST_PAIRS)
    if not settings.reboot and 0 < settings.soak < least:
        raise NearmetalError(
            f"soak is {settings.soak}; {FEWEST_PAIRS} pairs of stays, the fewest that decide, are up to {least} loads"
            f" with a burn_in of {settings.burn_in}: set at least that, or 0 to keep without them"
        )
    _require_reboots_possible(settings)
    step = settings.settle + longest_load(settings.seconds) + ANSWER_SECONDS + BOOT_SECONDS * settings.reboot
    if 0 < settings.abandon_after < step:
        raise NearmetalError(
            f"abandon_after is {settings.abandon_after}; a measurement of {settings.seconds:g} s may take {step:g} s"
            " with settling: set at least that, or 0 for a host that can't have a timer"
        )
    return settings


def _require_reboots_possible(settings: Settings) -> None:
    """Raise NearmetalError for settings that don't go with reboots."""
    if not settings.reboot:
        return
    if not settings.abandon_after:
        raise NearmetalError(
            "abandon_after is 0, and reboot is set: a host that is rebooted needs the timer, which takes it back when"
            " its controller is lost; set the seconds"
        )
    if settings.each:
        raise NearmetalError(
            "each and reboot are both set: each concern would take up to twice as many reboots as pairs, which"
            " is 400 for five concerns and 40 pairs; leave each out, or prove the settings of one concern against"
            " untuned with only"
        )
    if settings.pairs > MOST_PAIRS_WITH_REBOOT:
        raise NearmetalError(
            f"pairs is {settings.pairs}, and reboot is set: each pair takes two reboots, so at most"
            f" {MOST_PAIRS_WITH_REBOOT} pairs are allowed"
        )


def _number(name: str, value: Any) -> float:
    least, most, whole = _BOUNDS[name]
    kinds = int if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not least <= value <= most:
        kind = "a whole number" if whole else "a number"
        raise NearmetalError(f"{name} must be {kind} from {least:.10g} to {most:.10g}, not {shown(value)}")
    return value if whole else float(value)


def _guard(value: Any) -> Mapping[str, float]:
    if not isinstance(value, dict):
        raise NearmetalError(f"guard must have a percentage for each metric, not {shown(value)}")
    for name, limit in value.items():
        if not isinstance(name, str) or not re.fullmatch(NAME, name, re.ASCII):
            raise NearmetalError(f"guard must name metrics, not {shown(name)}: {NAME_WORDS}")
        if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not (limit == 0 or 0.1 <= limit <= 100):
            raise NearmetalError(f"guard has {shown(limit)} for {name}; it must be 0, or a percentage from 0.1 to 100")
    return {name: float(limit) for name, limit in value.items()}


def _primary(value: Any) -> str:
    if not isinstance(value, str) or (value and not re.fullmatch(NAME, value, re.ASCII)):
        raise NearmetalError(f"primary must be the name of a metric, not {shown(value)}: {NAME_WORDS}")
    return value
