# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a batch may be tuned now: a freeze file, windows of time, hosts that are away. PRIVATE to the collection."""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from datetime import datetime, timedelta
from typing import Any, Dict, List, Mapping, Optional, Sequence

from zoneinfo import ZoneInfo

from ...module_utils._error import NearmetalError
from ...module_utils._planning.options import Spec
from ...module_utils._words import counted, plain, shown

PERMISSION: Spec = {
    "freeze": {"type": "str", "default": ""},
    "window": {"type": "list", "elements": "str", "default": []},
    "most_unavailable": {"type": "str", "default": ""},
}
_LIMIT = re.compile(r"([0-9]{1,6})(%?)", re.ASCII)
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY, _TIME = f"({'|'.join(_DAYS)})", "([01][0-9]|2[0-4]):([0-5][0-9])"
_WINDOW = re.compile(rf"(?:{_DAY}(?:-{_DAY})? +)?{_TIME}-{_TIME}(?: +([A-Za-z][A-Za-z0-9_+/-]*))?", re.ASCII | re.I)


def frozen(path: str) -> Optional[str]:
    """Why nothing may be tuned while the freeze file exists; None without it."""
    if not path or not os.path.lexists(path):
        return None
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            said = plain(stream.readline(200).strip())
    except OSError:
        said = ""
    return f"{plain(path)} exists{f': {said}' if said else ''}; remove it to go on"


def outside(windows: Sequence[str], now: float) -> Optional[str]:
    """Why no batch may begin now; None within any of the windows, or without one. Raises NearmetalError."""
    within = [_within(window, now) for window in windows]
    if any(within) or not windows:
        return None
    return f"no batch begins outside {' or '.join(windows)}"


def _within(window: str, now: float) -> bool:
    """Whether it is that time; a window over midnight belongs to the day on which it begins."""
    match = _WINDOW.fullmatch(window.strip())
    if match is None:
        raise NearmetalError(f"rollout.window is such as 'Mon-Thu 09:00-16:00 UTC', not {shown(window)}")
    first, last, *times, zone = match.groups()
    begin, end = (60 * int(hour) + int(minute) for hour, minute in (times[:2], times[2:]))
    if begin >= 1440 or end > 1440 or begin == end:
        raise NearmetalError(f"rollout.window begins before 24:00 and has a length, not {shown(window)}")
    try:
        here = datetime.fromtimestamp(now, ZoneInfo(zone or "UTC"))
    except (OSError, LookupError, ValueError):
        raise NearmetalError(f"rollout.window: the controller knows no time zone {shown(zone)}") from None
    minute = 60 * here.hour + here.minute
    if begin > end and minute < end:
        here, minute = here - timedelta(days=1), minute + 1440
    low = _DAYS.index(first.lower()) if first else 0
    length = (_DAYS.index((last or first).lower()) - low) % 7 if first else 6
    return (here.weekday() - low) % 7 <= length and begin <= minute < (end if begin < end else end + 1440)


def unavailable(limit: str, strata: Mapping[str, int], away: Sequence[str]) -> List[str]:
    """Of each stratum with more unavailable hosts than `limit`, a number or share, what is said. Raises NearmetalError.

    `strata` has the stratum of each host of the batch, and `away` the hosts that can't be reached or aren't healthy.
    """
    sizes, found = Counter(strata.values()), []
    _most(limit, 0)  # raises
    for stratum in sorted({strata[host] for host in away}):
        hosts, of = [host for host in away if strata[host] == stratum], sizes[stratum]
        if len(hosts) > _most(limit, of):
            names = ", ".join([*hosts[:3], *(["…"] if len(hosts) > 3 else [])])
            share = f"{len(hosts)} of {counted(of, 'host')} of a stratum"
            found.append(f"{share} can't be reached or aren't healthy: {names}")
    return found


def _most(limit: str, of: int) -> float:
    match = _LIMIT.fullmatch(limit.strip() or "100%")
    if match is None:
        raise NearmetalError(f"rollout.most_unavailable is a number of hosts or a share, not {shown(limit)}")
    return of * int(match[1]) / 100 if match[2] else int(match[1])


def groups(limit: str, strata: Mapping[str, int]) -> Dict[str, int]:
    """The number of each host's group, of which all are out of service together, one group after the other.

    A group has no more hosts of a stratum than `limit`, or without one a hundredth of all hosts; at least one.
    """
    strata = strata if limit else dict.fromkeys(strata, 0)
    sizes, before, found = Counter(strata.values()), Counter[int](), {}
    for host, stratum in strata.items():
        together = _most(limit, sizes[stratum]) if limit else math.ceil(sizes[stratum] / 100)
        found[host] = before[stratum] // max(1, int(together))
        before[stratum] += 1
    return found


def refused(options: Mapping[str, Any], now: float) -> List[str]:
    """Why no host may be tuned now; empty if it may."""
    return list(filter(None, (frozen(options["freeze"]), outside(options["window"], now))))
