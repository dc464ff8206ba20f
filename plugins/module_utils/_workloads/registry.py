# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The workloads by name. PRIVATE to the collection."""

from __future__ import annotations

from typing import Dict

from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads import (
    analytics,
    base,
    burstable,
    cache,
    common,
    hpc,
    in_memory_database,
    jvm,
    low_latency,
    nvme_storage,
    packet_appliance,
    sap_hana,
    web,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads.workload import Workload, inherited

# What each named workload chooses itself; it inherits the other options.
OWN: Dict[str, Workload] = {
    module.__name__.rpartition(".")[2]: module.OWN
    for module in (
        analytics,
        burstable,
        cache,
        hpc,
        in_memory_database,
        jvm,
        low_latency,
        nvme_storage,
        packet_appliance,
        sap_hana,
        web,
    )
}

WORKLOADS: Dict[str, Workload] = {
    "base": base.OWN,
    **{name: inherited(base.OWN, common.OWN, own) for name, own in OWN.items()},
}
