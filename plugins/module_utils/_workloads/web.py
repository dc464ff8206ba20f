# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""web: nginx, HAProxy, Envoy and their like. PRIVATE to the collection."""

from __future__ import annotations

from .workload import Choice, Workload

OWN: Workload = {
    "hugepages": {
        "thp": Choice(
            "madvise",
            "programs that profit from huge pages ask for them; many small allocations only get larger",
            "Netflix, 2017",
        )
    },
    "network_irq": {
        "policy": Choice(
            "auto",
            "with one worker per CPU, each with a socket of its own, each queue belongs on a CPU of its own",
            "Netflix, 2016",
        )
    },
    "network_stack": {
        "adaptive_rx": Choice(
            "enabled",
            "interrupts wait a little when requests come by the hundred thousand, and not when they are few",
            "Netflix, 2016",
        ),
        "rmem_max": Choice(
            7500000,
            "Caddy and Traefik ask for 7 MiB per socket of HTTP/3: a smaller buffer loses packets in a burst",
            "quic-go, UDP buffer sizes",
        ),
        "wmem_max": Choice(7500000, "Caddy and Traefik ask for as much to send HTTP/3", "quic-go, UDP buffer sizes"),
        "somaxconn": Choice(4096, "a burst of new connections waits instead of being dropped", "perftune"),
        "max_syn_backlog": Choice(8192, "a burst of half-open connections waits too", "SAP note 2382421"),
        "port_range": Choice(
            "10240 65535",
            "a proxy opens a connection per request to few backends: 55,296 ports instead of 28,232",
            "Netflix, 2017",
        ),
        "reserved_ports": Choice(
            "auto",
            "no outgoing connection takes the port of a service that listens on this host",
            "Linux kernel, ip-sysctl",
        ),
        "slow_start_after_idle": Choice(
            "disabled", "connections to clients and backends pause and needn't start slowly again", "Netflix, 2017"
        ),
    },
}
