# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""packet_appliance: firewalls, NAT, load balancers; packets per second before all else. PRIVATE to the collection."""

from __future__ import annotations

from .workload import Choice, Workload

OWN: Workload = {
    "cpu_power": {"idle": Choice("c1", "a queue's CPU that sleeps deeply lets its ring fill", "AWS, 2017")},
    "memory": {
        "min_free_kbytes": Choice(
            131072,
            "128 MiB, 1 % of 12 GiB, so that a burst finds pages; refused above 5 % of the memory",
            "ENA driver guide",
        )
    },
    "network_irq": {
        "policy": Choice("auto", "each queue on a CPU of its own, cores of its node first", "Netflix, 2016"),
        "queues": Choice(
            "max",
            "packets per second grow with the queues; on the default route it needs allow_disruptive",
            "Netflix, 2016; ENA driver guide",
        ),
        "rps": Choice("kernel", "off: a packet that is passed on has no reader on another CPU", "ENA driver guide"),
    },
    "network_stack": {
        "netdev_budget": Choice(
            600, "twice as many packets per round of NAPI", "Netflix, 2016; the number is ours, unmeasured"
        ),
    },
}
