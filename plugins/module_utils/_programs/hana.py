# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""SAP HANA. PRIVATE to the collection."""

from __future__ import annotations

from .program import Page, Program, Wish

_NOTE_2131662 = Page(reference="SAP note 2131662", read="2026-11-27", again="2027-11-27")
_NOTE_2684254 = Page(reference="SAP note 2684254", read="2026-11-27", again="2027-11-27")
_NOTE_1656250 = Page(reference="SAP note 1656250", read="2026-11-27", again="2027-11-27")
_NOTE_1980196 = Page(reference="SAP note 1980196", read="2026-11-27", again="2027-11-27")
_NOTE_2382421 = Page(reference="SAP note 2382421", read="2026-11-27", again="2027-11-27")

HANA = Program(
    "SAP HANA",
    "sap_hana",
    (
        Wish(
            "hugepages.thp",
            "sap",
            "never on RHEL up to 9.1 and SLES up to 15 SP4, and madvise on later ones",
            _NOTE_2131662,
        ),
        Wish("numa.balancing", "disabled", "it binds its threads and memory itself", _NOTE_2684254),
        Wish("cpu_power.governor", "performance", "no query begins at a low clock", _NOTE_2684254),
        Wish("cpu_power.energy_perf_bias", 0, "its host prefers speed to saving power", _NOTE_2684254),
        Wish("cpu_power.idle", "c1", "on AWS no thread first waits for its core", _NOTE_1656250),
        Wish("memory.ksm", "disabled", "it has no equal pages, and the search costs CPU time", _NOTE_2684254),
        Wish("memory.max_map_count", 2147483647, "it maps its memory in very many areas", _NOTE_1980196),
        Wish("network_stack.somaxconn", 4096, "clients that reconnect all at once find room", _NOTE_2382421),
        Wish("network_stack.max_syn_backlog", 8192, "a burst of half-open connections finds room", _NOTE_2382421),
        Wish(
            "network_stack.slow_start_after_idle",
            "disabled",
            "connections between its hosts pause, and needn't begin small again",
            _NOTE_2382421,
        ),
    ),
    processes=("hdbindexserver",),
    left="`net.ipv4.tcp_timestamps`, which kernels have on; reserved ports, and `tsx=auto` on some kernels of SLES:"
    " saptune sets and verifies them",
)
