# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports of hosts whose topology and queues are known, with something of all that a sheet shows."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report.collect import Collector
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report.model import Past, Report

from tests.support.fleet import SLOW_CLOCK, finding, result_with
from tests.support.report import reports

QUEUES: List[Dict[str, Any]] = [
    {
        "queue": queue,
        "now": {"cpus": "0-3", "nodes": "0", "rps": "", "xps": ""},
        "wanted": {"cpus": str(queue), "nodes": "0", "rps": "", "xps": ""},
    }
    for queue in (0, 1)
]
TOPOLOGY = {
    "sockets": ["0-3"],
    "nodes": [{"id": 0, "cpus": "0-3", "memory": 24683204 << 10}],
    "cores": ["0,2", "1,3"],
    "offline": "",
    "caches": [{"name": "L1d", "size": 49152, "shared": []}, {"name": "L3", "size": 35 << 20, "shared": ["0-3"]}],
    "nics": [{"name": "ens5", "place": "0000:00:05.0", "node": 0, "driver": "ena"}],
    "disks": [{"name": "nvme0n1", "kind": "ebs", "node": None}],
}


def pictured(*hosts: str, past: Tuple[Past, ...] = (), queues: Sequence[Dict[str, Any]] = QUEUES) -> Report:
    """A report of these hosts."""
    collected = Collector()
    kept = finding("clocksource", "would_change", "persist", reason="the kernel forgets it", wanted="/etc/x.conf")
    result = result_with(SLOW_CLOCK, kept, finding("numa", "ok"), finding("smt", "refused", reason="a T3"))
    nic = {"name": "ens5", "place": "0000:00:05.0", "node": 0, "queues": list(queues)}
    for name in hosts or ("web-1",):
        collected.add(
            name,
            {
                **result,
                "topology": TOPOLOGY,
                "queue_map": [nic],
                "workload": ["web"],
                "platform": {"instance_type": "c5.xlarge", "kernel": "6.1.0-26-cloud-amd64"},
                "commands": ["# why", "echo tsc > clock"],
            },
        )
    return collected.report(reports.RUN, past=past)
