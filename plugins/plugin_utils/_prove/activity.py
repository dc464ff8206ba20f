# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the host did under the load in each state, and which version of the load ran: it explains a verdict. PRIVATE."""

from __future__ import annotations

from typing import Callable, List, Optional, Tuple

from ...module_utils._prove.statistics.forecast import Activity, activities
from ...module_utils._prove.statistics.history import history_of
from ...module_utils._prove.statistics.order import TUNED, UNTUNED
from ...module_utils._prove.statistics.record import Record
from ...module_utils._words import clipped, printable

_LONGEST_NAME = 40


def lines(record: Record) -> List[str]:
    """One line of what the host did, untuned → tuned; none while no pair counts, or where it doesn't say."""
    by_state = activities(history_of(record))
    states = (by_state[UNTUNED], by_state[TUNED])
    parts = [
        _pair(states, lambda activity: activity.softirq, "softirq {} % of the CPUs' time", ".2f"),
        _pair(states, lambda activity: activity.context_switches, "{} context switches/s", ".0f"),
        _pair(states, _interrupts, "{} interrupts/s of devices", ".0f"),
    ]
    known = [part for part in parts if part]
    busiest = [_busiest(activity) for activity in states]
    if known and all(busiest):
        known.append(f"the busiest {' → '.join(dict.fromkeys(busiest))}")
    against = "the other tuning" if record.start.against else "untuned"
    return [f"{against} → tuned: {', '.join(known)}"] if known else []


def _pair(
    states: Tuple[Activity, Activity], value_of: Callable[[Activity], Optional[float]], words: str, form: str
) -> str:
    values = [value_of(activity) for activity in states]
    known = [f"{value:{form}}" for value in values if value is not None]
    return words.format(" → ".join(known)) if len(known) == len(states) else ""


def _interrupts(activity: Activity) -> Optional[float]:
    return sum(activity.interrupts.values()) if activity.interrupts else None


def _busiest(activity: Activity) -> str:
    """The interrupt that came most often, with its share of all."""
    if not any(activity.interrupts.values()):
        return ""
    rate, name = max((rate, name) for name, rate in activity.interrupts.items())
    share = rate / sum(activity.interrupts.values())
    return f"{clipped(printable(name), _LONGEST_NAME)} ({share:.0%})"


def versions(record: Record) -> Tuple[str, ...]:
    """The versions of the load that ran, in their order."""
    known = [measurement.load_version for measurement in record.measurements if measurement.load_version]
    return tuple(dict.fromkeys(known))


def version(record: Record) -> List[str]:
    """The line with the load's version; it says if the load changed in the middle of the run."""
    known = versions(record)
    if not known:
        return []
    if len(known) == 1:
        return [f"the load's version: {known[0]}"]
    return [f"the load changed during the run: first {known[0]}, last {known[-1]}"]
