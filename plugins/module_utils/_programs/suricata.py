# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Suricata. PRIVATE to the collection."""

from __future__ import annotations

from .program import Page, Program, Wish

_PAGE = Page(reference="Suricata guide, performance", read="2026-11-27", again="2027-11-27")

SURICATA = Program(
    "Suricata",
    "packet_appliance",
    (
        Wish("network_stack.adaptive_rx", "disabled", "its guide switches it off for the lowest latency", _PAGE),
        Wish(
            "network_stack.rx_usecs",
            125,
            "its guide sets it, without adaptive moderation, for cards of Intel",
            _PAGE,
        ),
        Wish("network_stack.rx_ring", "1024", "its guide sets it for cards of Intel", _PAGE, exact=True),
    ),
    processes=("suricata",),
    packages=("suricata",),
    left="irqbalance off, symmetric hashing of flows, receive offloads off, and as many queues as it has workers",
)
