# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""in_memory_database: Redis, Valkey, Aerospike and their like. PRIVATE to the collection."""

from __future__ import annotations

from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads.workload import Choice, Workload

WORKLOAD: Workload = {
    "clocksource": {
        "source": Choice(
            "auto",
            "each request reads the clock several times; on Xen that is a system call until tsc takes over",
            "S0-11, S0-12, S0-14",
        ),
    },
}
