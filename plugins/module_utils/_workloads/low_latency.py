# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""low_latency: trading and its like, where the last microsecond counts. PRIVATE to the collection."""

from __future__ import annotations

from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads.workload import Choice, Workload

OWN: Workload = {
    "clocksource": {
        "source": Choice(
            "auto",
            "every message is stamped: on Xen each stamp is a system call until tsc takes over",
            "AWS, 2017",
        ),
    },
    "smt": {
        "threads": Choice(
            "disabled",
            "a neighbour on the core makes latency uneven",
            "AWS, 2017; docs/ec2.md 4",
        ),
    },
    "cpu_power": {
        "idle": Choice(
            "c1",
            "no core has to wake up from a deep state; polling instead is an opt-in of its own",
            "AWS, 2017; docs/ec2.md 4",
        ),
        "governor": Choice(
            "performance",
            "no core starts a message at a low clock",
            "docs/ec2.md 4",
        ),
    },
    "numa": {
        "balancing": Choice(
            "disabled",
            "moving a page causes page faults; bind threads and memory yourself",
            "AWS, 2017; docs/ec2.md 4",
        ),
    },
    "hugepages": {
        "thp": Choice(
            "never",
            "a thread never waits while the kernel makes a huge page",
            "docs/ec2.md 2.5; docs/ec2.md 4",
        ),
    },
    "network_irq": {
        "policy": Choice(
            "auto",
            "each queue interrupts one known CPU, so that yours can be another one",
            "Netflix, 2014–2017; docs/ec2.md 4",
        ),
    },
    "network_stack": {
        "adaptive_rx": Choice(
            "disabled",
            "adapting means waiting for more packets",
            "docs/ec2.md 2.8",
        ),
        "rx_usecs": Choice(
            0,
            "a packet interrupts at once",
            "docs/ec2.md 2.8",
        ),
        "tx_usecs": Choice(
            0,
            "sent buffers are freed at once",
            "docs/ec2.md 2.8",
        ),
        "busy_poll": Choice(
            70,
            "a thread that waits looks at the queue for 70 µs before it sleeps",
            "docs/ec2.md 2.8",
        ),
    },
    "kernel_check": {
        "workload": Choice(
            ["low_latency"],
            "on a burstable or flex type, or on one core, latency isn't yours to tune; a finding names another type",
            "docs/ec2.md 2.12; AWS, 2017",
        ),
    },
}
