# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measured values, changes and times as a person writes them. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Optional


def interval(low: Optional[float], high: Optional[float]) -> str:
    """The changes in percent that the figures don't exclude."""
    if low is None and high is None:
        return "nothing is excluded yet"
    if low is None:
        return f"below {percent(high or 0.0)}"
    if high is None:
        return f"above {percent(low)}"
    return f"{signed(low)} to {signed(high)}"


def ratio(evidence: float) -> str:
    """An evidence as `38:1`."""
    if evidence > 100000:
        return "more than 100000:1"
    return f"{evidence:.0f}:1" if evidence >= 10 else f"{evidence:.1f}:1"


def figure(value: float) -> str:
    """A measured value as a person writes it: six digits, and all of those before the point."""
    return f"{value:.0f}" if 1e6 <= abs(value) < 1e15 else f"{value:.6g}"


def at_least(low: Optional[float], high: Optional[float]) -> str:
    """The end of an interval that is nearer to no change, which a kept verdict overstates least; "" if inside."""
    least = next((end for end, sign in ((low, 1), (high, -1)) if end is not None and sign * end > 0), None)
    return "" if least is None else f"at least {percent(least)}, typically "


def percent(value: float) -> str:
    """A change in percent, with its sign."""
    return f"{signed(value)} %"


def signed(value: float) -> str:
    """A number with its sign, and a true minus."""
    text = f"{value:+.1f}" if abs(value) < 1e6 else f"{value:+.2g}"
    return ("0.0" if text in ("+0.0", "-0.0") else text).replace("-", "−")


def duration(seconds: float) -> str:
    """Seconds as `90 s`, `12 min` or `3 h 05 min`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d} min"
