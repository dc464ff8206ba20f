# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""cache: memcached and its like. PRIVATE to the collection."""

from __future__ import annotations

from .workload import Choice, Workload

OWN: Workload = {
    "cpu_power": {
        "idle": Choice("c1", "one request in a hundred would wait for a core that sleeps deeply", "AWS, 2017")
    },
    "hugepages": {
        "thp": Choice(
            "madvise",
            "slabs are allocated in pages; programs that profit from huge pages ask for them",
            "our choice, unmeasured",
        )
    },
    "network_irq": {
        "policy": Choice("auto", "as many threads as queues, each queue on a CPU of its own", "Netflix, 2016"),
        "rps": Choice(
            "auto",
            "8 queues are few for 32 or more CPUs: free CPUs on their node help",
            "Netflix, 2016; EC2 API, DescribeInstanceTypes",
        ),
        "rfs": Choice("auto", "a packet is handled on the CPU whose thread reads it", "Netflix, 2016"),
    },
    "network_stack": {
        "busy_poll": Choice(
            50,
            "a thread that waits looks at the queue for 50 µs before it sleeps: latency for CPU time",
            "tuned, network-latency",
        ),
        "somaxconn": Choice(4096, "there is room for clients that reconnect all at once", "perftune"),
        "slow_start_after_idle": Choice(
            "disabled", "pooled connections pause between bursts and needn't start slowly again", "Netflix, 2017"
        ),
    },
}
