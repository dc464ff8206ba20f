# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""common: what every named workload has in addition to `base`. PRIVATE to the collection."""

from __future__ import annotations

from .workload import Choice, Workload

OWN: Workload = {
    "network_stack": {
        "keepalive_time": Choice(
            300, "the newest types forget a connection that is idle for 350 s", "EC2 API, DescribeInstanceTypes"
        )
    }
}
