# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""CPU credits of burstable instances: today's rules. Pure. PRIVATE to the collection.

Figures and formulas are those of AWS's pages "CPU credits and baseline utilization" and "Monitor your
CPU credits". One credit is one vCPU at 100 % for one minute. The talk of 2017 let credits expire after
24 hours; today the balance is capped at what 24 hours earn, and earned credits stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Optional, Sequence, Tuple

STEP_MINUTES = 5  # CloudWatch shows credits in steps of 5 minutes


@dataclass(frozen=True)
class CreditRules:
    """What a burstable type earns."""

    earn_per_hour: float
    vcpus: int

    @property
    def cap(self) -> float:
        """The most credits that it can hold, and the most surplus before it costs."""
        return self.earn_per_hour * 24

    @property
    def baseline_percent(self) -> float:
        """The utilization of each vCPU at which it spends what it earns."""
        return self.earn_per_hour / 60 / self.vcpus * 100


_Sizes = Dict[str, Tuple[float, int]]
_T2: _Sizes = {
    "nano": (3, 1),
    "micro": (6, 1),
    "small": (12, 1),
    "medium": (24, 2),
    "large": (36, 2),
    "xlarge": (54, 4),
    "2xlarge": (81.6, 8),
}
_T3: _Sizes = {
    "nano": (6, 2),
    "micro": (12, 2),
    "small": (24, 2),
    "medium": (24, 2),
    "large": (36, 2),
    "xlarge": (96, 4),
    "2xlarge": (192, 8),
}
_FAMILIES = {"t2": _T2, "t3": _T3, "t3a": _T3, "t4g": _T3}
RULES: Dict[str, CreditRules] = {
    f"{family}.{size}": CreditRules(earn, vcpus)
    for family, sizes in _FAMILIES.items()
    for size, (earn, vcpus) in sizes.items()
}


@dataclass(frozen=True)
class Simulation:
    """What a load does to the credits."""

    balances: Tuple[float, ...]  # after each step
    balance: float
    surplus: float  # spent in advance; to be earned back
    charged: float  # surplus beyond the cap, which costs money
    limited_minutes: float  # standard only: minutes in which the instance got less CPU than it wanted


def simulate(
    rules: CreditRules,
    load: Sequence[Tuple[float, float]],
    unlimited: bool,
    balance: float = 0.0,
    surplus: float = 0.0,
) -> Simulation:
    """Credits under a load: pairs of minutes and utilization (per cent of all vCPUs)."""
    balances: List[float] = []
    charged = limited = 0.0
    for minutes, percent in load:
        left = minutes
        while left > 0:
            step = min(STEP_MINUTES, left)
            left -= step
            # The surplus is paid back before anything is saved.
            rest = balance - surplus + rules.earn_per_hour * step / 60 - rules.vcpus * step * percent / 100
            if not unlimited and rest < 0:
                limited += step
                rest = 0.0
            charged += max(0.0, -rest - rules.cap)
            balance, surplus = min(rules.cap, max(0.0, rest)), min(rules.cap, max(0.0, -rest))
            balances.append(round(balance, 3))
    return Simulation(tuple(balances), round(balance, 3), round(surplus, 3), round(charged, 3), limited)


def hours_left(
    rules: CreditRules, unlimited: bool, balance: float, surplus: float, used_per_hour: float
) -> Optional[float]:
    """Hours at this rate until it is slowed down (standard) or costs money (unlimited); None: never."""
    drain = used_per_hour - rules.earn_per_hour
    if drain <= 0:
        return None
    reserve = balance + (rules.cap - surplus if unlimited else 0.0)
    return max(0.0, reserve) / drain
