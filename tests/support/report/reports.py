# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports of simulated fleets, for tests and for the benchmark."""

from __future__ import annotations

import random
from typing import Any, Dict, Iterable, List

from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report.collect import Collector
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report.model import Report, Run

from tests.support.fleet import finding, result_with

CONCERNS = (
    "clocksource",
    "cpu_power",
    "cpu_credits",
    "kernel_check",
    "numa",
    "smt",
    "hugepages",
    "blkfront_check",
    "block_storage",
    "ebs",
    "enhanced_networking",
    "network_interfaces",
    "network_irq",
    "network_stack",
)
TYPES = ("m4.large", "c5.xlarge", "c5.9xlarge", "r5.large", "m7g.large", "i3.metal")
STATUSES = ("ok", "ok", "ok", "ok", "would_change", "not_applicable", "needs_reboot", "refused", "advice")
COMMAND = ("ansible-playbook", "nearmetal.ec2.tune", "-i", "hosts.yml")
RUN = Run("audit", "2026-01-31T11:59:00Z", "2026-01-31T12:00:00Z", 60.0, "0.1.0", ("hosts.yml",), COMMAND)


def collector(results: Dict[str, Dict[str, Any]]) -> Collector:
    """A collector with these results."""
    collected = Collector()
    for name, result in results.items():
        collected.add(name, result)
    return collected


def report(*results: Dict[str, Any], **more: Any) -> Report:
    """A report of the hosts h0, h1, …"""
    return collector({f"h{number}": result for number, result in enumerate(results)}).report(RUN, **more)


def fleet(hosts: int, findings_per_concern: int = 2) -> Report:
    """A large fleet, the same at each call; the thirtieth and every hundredth host is unreachable."""
    dice = random.Random(41)
    collected = Collector()
    for number in range(hosts):
        name = f"web-{number:04d}.example.com"
        collected.groups(name, ["all", ("redis", "web", "kafka")[number % 3]])
        if number % 100 == 30:
            collected.unreachable(name, "Connection timed out")
        else:
            collected.add(name, result_with(*_findings(dice, findings_per_concern), platform=_platform(number)))
    return collected.report(RUN, directory="nearmetal-report")


def _platform(number: int) -> Dict[str, str]:
    kind = TYPES[number % len(TYPES)]
    host_class = "metal" if kind.endswith("metal") else "xen_hvm" if kind.startswith("m4") else "nitro"
    return {"instance_type": kind, "host_class": host_class, "architecture": "x86_64", "kernel": "6.1.0-18-cloud-amd64"}


def _findings(dice: random.Random, each: int) -> Iterable[Dict[str, Any]]:
    found: List[Dict[str, Any]] = []
    for concern in CONCERNS:
        for number in range(each):
            status = dice.choice(STATUSES)
            found.append(
                finding(
                    concern,
                    status,
                    knob=f"knob_{number}",
                    now=dice.choice(("xen", "madvise", 1024, False)),
                    wanted="tsc" if status == "would_change" else None,
                    reason=f"{concern} decides how often each packet enters the kernel, and this is the slow way",
                    reference="AWS, 2017",
                    gain="AWS, 2017: 12.00 s on xen, 2.00 s on tsc" if status == "would_change" else "",
                )
            )
    return found
