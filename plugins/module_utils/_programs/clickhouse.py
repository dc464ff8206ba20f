# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""ClickHouse. PRIVATE to the collection."""

from __future__ import annotations

from .program import Check, Page, Program, Wish

_PAGE = Page(reference="ClickHouse guide", read="2026-11-27", again="2027-11-27")
_CHECKS = Page(reference="ClickHouse server, checks at start", read="2026-11-28", again="2027-11-28")

CLICKHOUSE = Program(
    "ClickHouse",
    "analytics",
    (
        Wish(
            "hugepages.thp",
            "madvise",
            "it warns of always, which works against its allocator",
            _PAGE,
            also=("never",),
            checked=True,
        ),
        Wish("cpu_power.governor", "performance", "on-demand clocks are slow under constant load", _PAGE),
        Wish(
            "memory.overcommit",
            "heuristic",
            "it warns of overcommit that is off",
            _PAGE,
            also=("always",),
            checked=True,
        ),
    ),
    processes=("clickhouse-server",),
    packages=("clickhouse-server",),
    checks=(
        Check("kernel.pid_max", 30000, _CHECKS),
        Check("kernel.threads-max", 30000, _CHECKS),
        Check("kernel.task_delayacct", 1, _CHECKS, "it warns from 23.10 on, and doesn't count waits for disks"),
    ),
    left="`kernel.task_delayacct`; a clock other than `xen` and `hpet`, of which it warns: `clocksource` chooses one",
)
