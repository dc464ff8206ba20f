# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""burstable: web servers on T2, T3, T3a and T4g. PRIVATE to the collection."""

from __future__ import annotations

from .workload import Choice, Workload

OWN: Workload = {
    "hugepages": {
        "thp": Choice(
            "madvise", "memory is small: programs that profit from huge pages ask for them", "our choice, unmeasured"
        )
    }
}
