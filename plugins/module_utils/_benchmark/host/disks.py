# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the disks of a benchmark are, and how long EBS held them back meanwhile. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Sequence

from ..._facts import disk, ebs
from ..._facts.host import Host

Counters = Mapping[str, Mapping[str, int]]


def counters(host: Host) -> Counters:
    """EBS's counters of each volume that has them: name → limit → microseconds since it was attached."""
    return {name: found._asdict() for name, found in ebs.observe(host).exceeded}


def loaded(host: Host, names: Sequence[str], before: Counters, after: Counters) -> Dict[str, Any]:
    """The kinds of the disks, and the milliseconds for which each limit of EBS held one of them back."""
    known = [name for name in names if host.exists(f"{disk.BLOCK}/{name}")]
    found: Dict[str, Any] = {"kinds": sorted({disk.kind_and_driver(host, name)[0] for name in known})}
    watched = [name for name in known if name in before and name in after]
    if watched:
        found["held_back_ms"] = {
            limit[: -len("_us")]: round(
                max(0, sum(after[name][limit] - before[name][limit] for name in watched)) / 1000
            )
            for limit in after[watched[0]]
        }
    return found
