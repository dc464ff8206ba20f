# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""nvme_storage: databases and file servers on instance store (i3, i4i, i7ie). PRIVATE to the collection."""

from __future__ import annotations

from .workload import Choice, Workload

OWN: Workload = {
    "cpu_power": {
        "idle": Choice(
            "c1",
            "the interrupt that ends a read finds its CPU awake; AWS asks for it before benchmarks",
            "EC2 User Guide, EBS benchmarks",
        )
    },
    "memory": {
        "aio_max_nr": Choice(
            1048576,
            "databases prepare thousands of requests per CPU, and soon use up 65,536",
            "rpk, tuner aio_events",
        ),
        "max_map_count": Choice(
            1048575,
            "Cassandra maps its tables file by file, and warns at its start below this",
            "Cassandra, startup checks",
        ),
    },
    "block_storage": {
        "io_timeout": Choice(
            "aws",
            "90 s for instance store, where a silent disk is broken, and no limit for EBS, like AWS's own rules",
            "amazon-ec2-utils",
        ),
        "disks": Choice(
            [{"kind": "instance_store", "scheduler": "none", "nomerges": 2}],
            "only instance store, which orders requests itself; random requests are hardly ever adjacent,"
            " so a scheduler and the search for requests to merge only cost CPU; EBS volumes still merge"
            " small writes",
            "perftune; SAP note 1656250; unmeasured",
        ),
    },
}
