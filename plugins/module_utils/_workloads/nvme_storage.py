# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nvme_storage: databases and file servers on instance store (i3, i4i, i7ie). PRIVATE to the collection."""

from __future__ import annotations

from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads.workload import Choice, Workload

OWN: Workload = {
    "cpu_power": {
        "idle": Choice(
            "c1",
            "the interrupt that ends a read finds its CPU awake; AWS asks for it before benchmarks",
            "ec2.md 2.2, ec2.md 4",
        ),
    },
    "block_storage": {
        "io_timeout": Choice(
            "aws",
            "90 s for instance store, where a disk that is silent is broken, and no end for EBS, as AWS's own rules",
            "ec2.md 2.11, ec2.md 4",
        ),
        "scheduler": Choice(
            "none",
            "the device orders requests itself; a scheduler of the kernel's costs CPU per request",
            "S3-03, ec2.md 4",
        ),
        "nomerges": Choice(
            2,
            "random requests hardly ever touch, and looking for some that do costs CPU for each of a million",
            "S3-03, ec2.md 4",
        ),
    },
}
