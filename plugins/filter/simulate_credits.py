# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter simulate_credits; its documentation is in simulate_credits.yml."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Callable, Dict, List, Tuple

from ansible.errors import AnsibleFilterError

from ..module_utils._cloud.credit_rules import RULES, STEP_MINUTES, simulate

_MOST_MINUTES = 366 * 24 * 60


def simulation(
    load: Any, instance_type: str, specification: str = "standard", balance: float = 0.0, surplus: float = 0.0
) -> Dict[str, Any]:
    """The credits of a burstable type after a load, and the type's rules. Raises AnsibleFilterError."""
    rules = RULES.get(instance_type)
    if rules is None:
        raise AnsibleFilterError(f"simulate_credits: {instance_type} has no CPU credits that this version knows")
    if specification not in ("standard", "unlimited"):
        raise AnsibleFilterError(f"simulate_credits: specification is standard or unlimited, not {specification!r}")
    result = simulate(rules, _pairs(load), specification == "unlimited", float(balance), float(surplus))
    return {
        **asdict(result),
        "balances": list(result.balances),
        "earn_per_hour": rules.earn_per_hour,
        "cap": rules.cap,
        "baseline_percent": rules.baseline_percent,
    }


def _pairs(load: Any) -> List[Tuple[float, float]]:
    """Minutes and per cent of each element: a number alone lasts one step."""
    pairs = []
    for element in load if isinstance(load, list) else [load]:
        given = element if isinstance(element, dict) else {"percent": element, "minutes": STEP_MINUTES}
        try:
            pairs.append((float(given["minutes"]), float(given["percent"])))
        except (KeyError, TypeError, ValueError):
            raise AnsibleFilterError(
                f"simulate_credits: {element!r} is neither a percentage nor a map of minutes and percent"
            ) from None
    if any(not 0 <= percent <= 100 or minutes < 0 for minutes, percent in pairs):
        raise AnsibleFilterError("simulate_credits: percent is from 0 to 100, and minutes are not negative")
    if sum(minutes for minutes, _percent in pairs) > _MOST_MINUTES:
        raise AnsibleFilterError("simulate_credits: more than a year is not simulated")
    return pairs


class FilterModule:
    def filters(self) -> Dict[str, Callable[..., Dict[str, Any]]]:
        return {"simulate_credits": simulation}
