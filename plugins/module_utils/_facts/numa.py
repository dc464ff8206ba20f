# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts about NUMA: how much memory is remote, and near which nodes services and devices are. PRIVATE."""

from __future__ import annotations

from typing import FrozenSet, Mapping, NamedTuple, Optional

from .._parse import cmdline, kernel_counters
from . import services
from .host import Host
from .services import Device, Process
from .topology import NODE, node_names


class NumaFacts(NamedTuple):
    """The kernel's counters since boot, in per mille so that they are whole numbers."""

    remote: Mapping[str, Optional[int]]  # node → per mille of its pages that went to CPUs of another node
    off_argument: bool  # numa=off is on the kernel's command line
    balancing_argument: Optional[str]  # the last numa_balancing= there: enable or disable
    # Observed where there is more than one node:
    units: FrozenSet[str]  # unit files of services
    processes: Mapping[str, Process]  # running service → its main process
    devices: Mapping[str, Device]  # by interface, NVMe controller or PCI address


def observe(host: Host) -> NumaFacts:
    """Read each node's numastat, the command line, and where services run."""
    counters = {
        node: kernel_counters.parse_counts(host.text(f"{NODE}/{node}/numastat") or "") for node in node_names(host)
    }
    arguments = host.kernel_arguments()
    return NumaFacts(
        remote={node: _remote(pages) for node, pages in counters.items()},
        off_argument="off" in cmdline.values(arguments, "numa"),
        balancing_argument=cmdline.last(arguments, "numa_balancing"),
        units=services.units(host) if len(counters) > 1 else frozenset(),
        processes=services.observe(host) if len(counters) > 1 else {},
        devices=services.devices(host) if len(counters) > 1 else {},
    )


def _remote(pages: Mapping[str, int]) -> Optional[int]:
    other, local = pages.get("other_node", 0), pages.get("local_node", 0)
    return other * 1000 // (other + local) if other + local else None
