# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a host suffers after its tuning, by its own counters: each guard has a limit. Pure. PRIVATE."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Mapping

from ...module_utils._error import NearmetalError
from ...module_utils._words import choices, printable, shown

# Guard → its limit: what may be more than before. An event may not come at all.
LIMITS: Mapping[str, float] = {
    "failed_units": 0,
    "oops": 0,
    "hung_task": 0,
    "nic_reset": 0,
    "io_error": 0,
    "oom": 0,
    "retransmits": 1,  # percent of the segments sent
    "softnet_drops": 10,  # a second
    "allowances": 10,  # packets, or milliseconds of EBS, a second beyond what the instance may
    "steal": 5,  # percent of all CPU time
}
KERNEL = ("oops", "hung_task", "nic_reset", "io_error", "oom")


def limits_of(given: Mapping[str, Any]) -> Dict[str, float]:
    """The limit of each guard that is on. Raises NearmetalError for what is no guard or no limit."""
    limits = dict(LIMITS)
    for name, limit in given.items():
        if name not in LIMITS:
            raise NearmetalError(f"rollout.guards has {choices(list(LIMITS), str(name))}, not {shown(name)}")
        if limit is False:
            del limits[name]
        elif isinstance(limit, bool) or not isinstance(limit, (int, float)) or not 0 <= limit < math.inf:
            raise NearmetalError(f"rollout.guards.{name} is a limit of 0 or more, or false, not {shown(limit)}")
        else:
            limits[name] = float(limit)
    return limits


def fired(limits: Mapping[str, float], before: Mapping[str, Any], after: Mapping[str, Any]) -> List[str]:
    """Which guards fired on a host, in words. `before` was seen right before its tuning; rates are since its boot."""
    rebooted = before.get("boot_id") != after.get("boot_id")
    since = -1 if rebooted else before.get("sequence", -1)
    new = sorted(set(after.get("failed_units") or ()) - set(before.get("failed_units") or ()))
    found = []
    if "failed_units" in limits and len(new) > limits["failed_units"]:
        found.append(f"failed_units: {printable(', '.join(map(str, new)))[:200]}")
    for kind in KERNEL:
        said = [text for sequence, name, text in after.get("kernel", ()) if name == kind and sequence > since]
        if kind in limits and len(said) > limits[kind]:
            found.append(f"{kind}: {printable(said[-1])[:120]}")
    earlier = {} if rebooted else before
    for guard, count, of, scale, unit in _RATES:
        if guard in limits and None not in (after.get(count), after.get(of), before.get(count), before.get(of)):
            usual = _ratio(before[count], before[of]) * scale
            passed = after[of] - earlier.get(of, 0)
            now = _ratio(after[count] - earlier.get(count, 0), passed) * scale
            if now - usual > limits[guard]:
                found.append(f"{guard}: {now:.3g} {unit}, {usual:.3g} before; {limits[guard]:g} more is allowed")
    return found


# Guard, what is counted, what it is counted in, the scale, the unit.
_RATES = (
    ("retransmits", "retransmitted", "segments", 100.0, "% of the segments"),
    ("softnet_drops", "softnet_dropped", "uptime", 1.0, "a second"),
    ("allowances", "allowances", "uptime", 1.0, "a second"),
    ("steal", "steal", "cpu_time", 100.0, "%"),
)


def _ratio(count: float, of: float) -> float:
    return max(0.0, count) / of if of > 0 else 0.0
