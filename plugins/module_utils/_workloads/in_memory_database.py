# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""in_memory_database: Redis, Valkey, Aerospike and their like. PRIVATE to the collection."""

from __future__ import annotations

from .workload import Choice, Workload

OWN: Workload = {
    "clocksource": {
        "source": Choice(
            "auto",
            "each request reads the clock several times; on Xen that is a system call until tsc takes over",
            "AWS, 2017",
        )
    },
    "cpu_power": {
        "idle": Choice(
            "c1",
            "a request that finds its CPU in a deep idle state waits until it has woken up; AWS names Redis for C1",
            "AWS, 2017; EC2 User Guide, processor state control",
        ),
        "turbo": Choice("kernel", "one thread serves most requests: its core may run at a higher clock", "AWS, 2017"),
    },
    "hugepages": {
        "thp": Choice(
            "never",
            "a request that waits for memory is answered late, and saving a snapshot forks the process",
            "AWS, 2017; Redis guide; Valkey guide; Aerospike guide",
        )
    },
    "memory": {
        "overcommit": Choice(
            "always",
            "saving forks the process: the heuristic may refuse a fork that needs next to no memory",
            "Redis guide; Valkey guide",
        )
    },
    "network_irq": {
        "policy": Choice(
            "auto",
            "small requests by the hundred thousand: the CPU that answers a queue's interrupt is the first limit",
            "Aerospike, 2014; Netflix, 2016",
        ),
        "rps": Choice(
            "auto", "Aerospike, 2014: 250,000 to 800,000 requests per second through one queue", "Aerospike, 2014"
        ),
        "rfs": Choice("auto", "a packet is handled on the CPU whose service thread reads it", "Netflix, 2016"),
        "xps": Choice(
            "auto",
            "an answer leaves by the queue whose interrupt is nearest to its thread",
            "Linux kernel, networking/scaling",
        ),
    },
    "network_stack": {
        "somaxconn": Choice(
            4096,
            "there is room for clients that reconnect all at once: Aerospike asks for it, Redis for 511",
            "Aerospike server, checks at start; Redis guide",
        ),
        "slow_start_after_idle": Choice(
            "disabled", "pooled connections pause between bursts and needn't start slowly again", "Netflix, 2017"
        ),
    },
}
