# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""base: what is safe on every class of EC2 hosts, whatever runs there. PRIVATE to the collection."""

from __future__ import annotations

from .workload import Choice, Workload

OWN: Workload = {
    "clocksource": {
        "source": Choice(
            "auto",
            "the clock tsc where the CPU promises that it runs evenly; elsewhere the kernel chose well",
            "AWS, 2017; amazon-eks-ami on GitHub, pull request 2144; Linux kernel, commit 7539b174aef4",
        )
    },
    # These concerns only check, so there is nothing to choose.
    "kernel_check": {},
    "blkfront_check": {},
    "service_check": {},
}
