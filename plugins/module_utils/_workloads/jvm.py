# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""jvm: services on a Java virtual machine. PRIVATE to the collection."""

from __future__ import annotations

from .workload import Choice, Workload

OWN: Workload = {
    "clocksource": {
        "source": Choice(
            "auto", "logs and metrics read the clock all the time: on Xen each reading is a system call", "AWS, 2017"
        )
    },
    "hugepages": {
        "thp": Choice(
            "madvise",
            "the heap asks for huge pages by -XX:+UseTransparentHugePages; other programs get none unasked",
            "Graviton guide",
        )
    },
    "memory": {
        "swappiness": Choice(1, "a collection that touches a heap in swap stops the service", "Elasticsearch guide"),
        "max_map_count": Choice(
            1048576, "search indexes are mapped file by file; Elasticsearch asks for it", "Elasticsearch guide"
        ),
    },
}
