# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the host did under the load in each state, and which version of the load ran: it explains a verdict. PRIVATE."""

from __future__ import annotations

from typing import Callable, List, Optional, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.forecast import Activity, activities
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.history import history_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.order import TUNED, UNTUNED
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.record import Record
from ansible_collections.nearmetal.ec2.plugins.module_utils._words import clipped, printable

_LONGEST_NAME = 40


def lines(record: Record) -> List[str]:
    """One line of what the host did, untuned → tuned; none while no pair counts, or where it doesn't say."""
    found = activities(history_of(record))
    states = (found[UNTUNED], found[TUNED])
    parts = [
        _pair(states, lambda each: each.softirq, "softirq {} % of the CPUs' time", ".2f"),
        _pair(states, lambda each: each.context_switches, "{} context switches/s", ".0f"),
        _pair(states, lambda each: sum(each.interrupts.values()) or None, "{} interrupts/s of devices", ".0f"),
    ]
    known = [part for part in parts if part]
    busiest = [_busiest(each) for each in states]
    if known and all(busiest):
        known.append(f"the busiest {' → '.join(dict.fromkeys(busiest))}")
    against = "the other tuning" if record.start.against else "untuned"
    return [f"{against} → tuned: {', '.join(known)}"] if known else []


def _pair(
    states: Tuple[Activity, Activity], value_of: Callable[[Activity], Optional[float]], words: str, form: str
) -> str:
    values = [value_of(each) for each in states]
    known = [f"{value:{form}}" for value in values if value is not None]
    return words.format(" → ".join(known)) if len(known) == len(states) else ""


def _busiest(found: Activity) -> str:
    """The interrupt that came most often, with its share of all."""
    if not found.interrupts:
        return ""
    name = max(found.interrupts, key=lambda each: (found.interrupts[each], each))
    share = found.interrupts[name] / sum(found.interrupts.values())
    return f"{clipped(printable(name), _LONGEST_NAME)} ({share:.0%})"


def versions(record: Record) -> Tuple[str, ...]:
    """The versions of the load that ran, in their order."""
    found = [measurement.load_version for measurement in record.measurements if measurement.load_version]
    return tuple(dict.fromkeys(found))


def version(record: Record) -> List[str]:
    """The line with the load's version; it says if the load changed in the middle of the run."""
    found = versions(record)
    if not found:
        return []
    if len(found) == 1:
        return [f"the load's version: {found[0]}"]
    return [f"the load changed during the run: first {found[0]}, last {found[-1]}"]
