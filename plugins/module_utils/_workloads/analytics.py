# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""analytics: scans and shuffles, throughput before latency. PRIVATE to the collection."""

from __future__ import annotations

from .workload import Choice, Workload

OWN: Workload = {
    "cpu_power": {
        "idle": Choice(
            "kernel",
            "idle cores that sleep deeply leave their power to the busy ones: 3.44 instead of 3.20 GHz on c4.8xlarge",
            "AWS, 2017; EC2 User Guide, processor state control",
        ),
        "turbo": Choice("kernel", "busy cores run at higher clocks", "AWS, 2017"),
    },
    "numa": {
        "balancing": Choice(
            "enabled", "these threads aren't bound, so the kernel moves their memory to them", "AWS, 2017"
        )
    },
    "memory": {
        "swappiness": Choice(
            1, "a scan through the file cache doesn't push programs out to swap", "Cloudera guide, swappiness"
        ),
        "dirty": Choice(
            "40%",
            "what a shuffle writes stays in memory, and its writers needn't wait",
            "tuned, throughput-performance",
        ),
        "dirty_background": Choice(
            "10%", "the kernel begins to write long before that limit", "tuned, throughput-performance"
        ),
    },
    "network_stack": {
        "rx_ring": Choice(
            "4096",
            "a shuffle comes as one long burst from many hosts; more descriptors outlast it",
            "Netflix, 2016",
        ),
        "adaptive_rx": Choice("enabled", "fewer interrupts while data streams", "Netflix, 2016"),
        "mtu": Choice(
            9001,
            "large frames cost less CPU per byte within the VPC",
            "Netflix, 2016; EC2 User Guide, network MTU",
        ),
        "mtu_probing": Choice(
            "on_black_hole", "this detects a path that silently drops larger frames", "EC2 User Guide, network MTU"
        ),
    },
    "block_storage": {
        "read_ahead_kb": Choice(
            1024,
            "scans read in order; AWS asks for 1 MiB on st1 and sc1, which gain from large requests",
            "EC2 User Guide, EBS volume performance",
        )
    },
}
