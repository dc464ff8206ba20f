# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""sap_hana: SAP HANA: its kernel settings for AWS. PRIVATE to the collection."""

from __future__ import annotations

from .workload import Choice, Workload

OWN: Workload = {
    "cpu_power": {
        "idle": Choice(
            "c1",
            "SAP asks for C1 on AWS: a thread that answers a query doesn't first wait for its core",
            "SAP note 1656250",
        ),
        "governor": Choice(
            "performance", "SAP asks for it; types that choose no frequency have no governor", "SAP note 2684254"
        ),
    },
    "numa": {
        "balancing": Choice(
            "disabled",
            "HANA binds its threads and memory itself; the kernel's moves only cost time",
            "SAP note 2684254; AWS, 2017",
        )
    },
    "hugepages": {
        "thp": Choice(
            "sap",
            "SAP wants never on RHEL up to 9.1 and SLES up to 15 SP4, and madvise on later ones",
            "SAP note 2131662; SAP note 2205917; saptune, note 2684254; community.sap_install, huge pages",
        )
    },
    "memory": {
        "swappiness": Choice(
            10, "HANA keeps its columns in memory, and waits when they come from swap", "tuned, sap-hana"
        ),
        "max_map_count": Choice(2147483647, "HANA maps its memory in very many areas", "SAP note 1980196"),
        "ksm": Choice("disabled", "HANA has no equal pages: the search only costs CPU time", "SAP note 2684254"),
    },
    "network_stack": {
        "somaxconn": Choice(4096, "there is room for clients that reconnect all at once", "SAP note 2382421"),
        "max_syn_backlog": Choice(8192, "a burst of half-open connections waits too", "SAP note 2382421"),
        "slow_start_after_idle": Choice(
            "disabled",
            "connections between hosts of one system pause and needn't begin small again",
            "SAP note 2382421; Netflix, 2017",
        ),
    },
    "block_storage": {
        "io_timeout": Choice(
            "aws",
            "the kernel waits for a volume that answers late: otherwise the file system would be read-only after 30 s",
            "SAP note 1656250",
        ),
        "scheduler": Choice(
            "none",
            "the device orders requests itself; a scheduler of the kernel's costs CPU per request",
            "SAP note 1656250",
        ),
    },
    "kernel_check": {
        "workload": Choice(
            ["sap_hana"],
            "SAP supports HANA on neither Graviton nor burstable types; a finding names another type",
            "SAP note 1656250",
        )
    },
}
