# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""hpc: tightly coupled computing, MPI and AVX. PRIVATE to the collection."""

from __future__ import annotations

from .workload import Choice, Workload

OWN: Workload = {
    "smt": {
        "threads": Choice(
            "disabled",
            "one thread fills a core's floating-point units; the second one only makes ranks uneven. Slurm takes a node"
            " with fewer CPUs than its slurm.conf says out of service: write there what slurmd -C prints afterwards",
            "AWS, 2017; slurmd(8)",
        )
    },
    "cpu_power": {
        "turbo": Choice(
            "disabled",
            "the slowest rank sets the pace, and AVX code costs some cores their turbo; left alone since Ice Lake",
            "AWS, 2017",
        )
    },
    "numa": {
        "balancing": Choice(
            "disabled",
            "ranks are bound to their cores; moving their pages costs time at every barrier",
            "AWS, 2017; tuned, hpc-compute",
        ),
        "zone_reclaim_mode": Choice(
            1,
            "a rank drops file cache before it takes memory of another node, as tuned's hpc profile does",
            "tuned, hpc-compute",
        ),
    },
    "hugepages": {
        "thp": Choice(
            "always", "large arrays are walked from end to end: fewer misses of the TLB", "tuned, hpc-compute"
        )
    },
    "memory": {
        "swappiness": Choice(10, "one rank that waits for its swap makes all others wait", "tuned, hpc-compute")
    },
    "network_stack": {
        "mtu": Choice(
            9001,
            "large frames carry a message in fewer packets within the cluster's placement group",
            "Netflix, 2016; EC2 User Guide, network MTU",
        ),
        "mtu_probing": Choice(
            "on_black_hole", "this detects a path that silently drops larger frames", "EC2 User Guide, network MTU"
        ),
    },
    "kernel_check": {
        "workload": Choice(
            ["hpc"],
            "burstable and flex types or one core can't keep up with other ranks; a finding names another type",
            "EC2 User Guide, CPU credits; AWS, 2017",
        )
    },
}
