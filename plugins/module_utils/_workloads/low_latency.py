# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""low_latency: trading and its like, where the last microsecond counts. PRIVATE to the collection."""

from __future__ import annotations

from .workload import Choice, Workload

OWN: Workload = {
    "clocksource": {
        "source": Choice(
            "auto", "every message is stamped: on Xen each stamp is a system call until tsc takes over", "AWS, 2017"
        )
    },
    "smt": {"threads": Choice("disabled", "a neighbor on the core makes latency uneven", "our choice, unmeasured")},
    "cpu_power": {
        "idle": Choice(
            "c1",
            "no core has to wake up from a deep state; polling instead is an opt-in of its own",
            "AWS, 2017; ENA driver guide",
        ),
        "nmi_watchdog": Choice("disabled", "no watchdog interrupts a thread", "tuned, network-latency"),
        "timer_migration": Choice("disabled", "a busy CPU keeps to its own timers", "tuned, network-latency"),
        "stat_interval": Choice(10, "counters are added up less often", "tuned, network-latency"),
        "governor": Choice("performance", "no core starts a message at a low clock", "tuned, network-latency"),
    },
    "numa": {
        "balancing": Choice(
            "disabled",
            "moving a page causes page faults; bind threads and memory yourself",
            "AWS, 2017; tuned, network-latency",
        )
    },
    "hugepages": {
        "thp": Choice("never", "a thread never waits while the kernel makes a huge page", "tuned, network-latency")
    },
    "memory": {
        "swappiness": Choice(10, "no thread waits for its memory to come back from swap", "tuned, latency-performance"),
        "dirty": Choice(
            "10%", "less data waits to be written, so a program never waits for much", "tuned, latency-performance"
        ),
        "dirty_background": Choice(
            "3%", "the kernel writes little and often instead of much at once", "tuned, latency-performance"
        ),
        "ksm": Choice(
            "disabled",
            "no write of your threads first copies a page that was merged",
            "Linux kernel, ksm; unmeasured",
        ),
    },
    "network_irq": {
        "policy": Choice(
            "auto", "each queue interrupts one known CPU, so that your threads can run on others", "Netflix, 2016"
        )
    },
    "network_stack": {
        "adaptive_rx": Choice("disabled", "adapting means waiting for more packets", "ENA driver guide"),
        "rx_usecs": Choice(0, "a packet interrupts at once", "ENA driver guide"),
        "tx_usecs": Choice(0, "sent buffers are freed at once", "ENA driver guide"),
        "busy_poll": Choice(
            70, "a thread that waits looks at the queue for 70 µs before it sleeps", "ENA driver guide"
        ),
    },
    "kernel_check": {
        "workload": Choice(
            ["low_latency"],
            "on a burstable or flex type, or on one core, latency isn't yours to tune; a finding names another type",
            "EC2 User Guide, CPU credits; AWS, 2017",
        )
    },
}
