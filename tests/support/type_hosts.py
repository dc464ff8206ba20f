# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each type of the offline table as a host with its own CPUs, threads, nodes, queues, disks and clock.

The table says how many CPUs, cores, threads and queues a type has. It says nothing of nodes: a host gets one
per 96 vCPUs on x86 and one per 192 on Graviton, and its NIC belongs to none, as on most of EC2. Types whose
hosts would look alike share one, so that 1,401 types need some 200 hosts.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.types.facts import TypeFacts
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.types.table import offline_types

from tests.support.files.dictionary import MemoryHost
from tests.support.files.sysctls import defaults
from tests.support.hosts import FOLDER, built

PRODUCT = "/sys/devices/virtual/dmi/id/product_name"
EBS, STORE = "Amazon Elastic Block Store", "Amazon EC2 NVMe Instance Storage"
IDLE = {"driver": "intel_idle", "states": [["POLL", 0], ["C1", 2], ["C1E", 10], ["C6", 133]]}
# The first state polls, whatever its name is.
IDLE_OF_OLD_KERNELS = {"driver": "intel_idle", "states": [["C0", 0], ["C1-HSW", 2], ["C1E-HSW", 10], ["C6-HSW", 133]]}
# Limits that an operator may have raised: key → the kernel's maximum, number by number.
RAISED: Dict[str, Tuple[int, ...]] = {
    "net/core/somaxconn": (1 << 20,),
    "net/core/netdev_max_backlog": (1 << 20,),
    "net/core/netdev_budget": (10000,),
    "net/core/busy_poll": (1000,),
    "net/core/busy_read": (1000,),
    "net/core/rmem_max": (1 << 30,),
    "net/core/wmem_max": (1 << 30,),
    "net/ipv4/tcp_max_syn_backlog": (1 << 20,),
    "net/ipv4/tcp_rmem": (65536, 1 << 20, 1 << 30),
    "net/ipv4/tcp_wmem": (65536, 1 << 20, 1 << 30),
    "vm/min_free_kbytes": (400000,),
    "vm/max_map_count": ((1 << 31) - 1,),
    "fs/aio-max-nr": (1 << 24,),
}


@dataclass(frozen=True)
class Shape:
    """What distinguishes one host from another when it is planned; types of one shape differ in their name alone."""

    kind: str  # the host of tests/hosts that lends its kernel, clock and firmware
    burstable: bool
    cores: int
    threads: int
    nodes: int
    driver: str
    queues: int
    stores: int  # NVMe disks of instance store
    sleeps: bool  # whether its CPUs have idle states of their own
    memory_mib: int  # on Xen, where it helps to recognize a T2; 0: as in tests/hosts

    @property
    def cpus(self) -> int:
        """How many CPUs are online at first."""
        return self.cores * self.threads


def shapes() -> Dict[Shape, List[str]]:
    """Shape → the types that have it."""
    found: Dict[Shape, List[str]] = {}
    for name, kind in sorted(offline_types().items()):
        found.setdefault(shape_of(kind), []).append(name)
    return found


def shape_of(kind: TypeFacts) -> Shape:
    """The shape of a type; one thread per core where the table doesn't say."""
    arm = "arm64" in kind.architectures
    vcpus = kind.vcpus or 1
    threads = kind.threads_per_core or 1
    cards = [card.default_queues for card in kind.cards if card.default_queues]
    if kind.ena in ("required", "supported"):
        driver, queues = "ena", min(vcpus, cards[0] if cards else 8)
    else:
        driver, queues = ("ixgbevf", min(vcpus, 2)) if kind.sriov else ("vif", 1)
    return Shape(
        kind=_kind(kind, arm),
        burstable=kind.burstable,
        cores=vcpus // threads,
        threads=threads,
        nodes=max(1, vcpus // (192 if arm else 96)),
        driver=driver,
        queues=queues,
        stores=2 if kind.instance_store_nvme in ("required", "supported") else 0,
        sleeps=not arm and (kind.bare_metal or vcpus >= 64),
        memory_mib=(kind.memory_mib or 0) if kind.hypervisor == "xen" and driver == "vif" else 0,
    )


def _kind(kind: TypeFacts, arm: bool) -> str:
    if kind.bare_metal:
        return "graviton_metal" if arm else "metal"
    if kind.hypervisor == "xen":
        return "xen_hvm" if "hvm" in kind.virtualization_types else "xen_pv"
    return "graviton" if arm else "nitro"


def host(shape: Shape, name: str, chance: Optional[random.Random] = None) -> MemoryHost:
    """A host of that shape that calls itself by that type; tuned by hand before when there is `chance`."""
    template: Dict[str, Any] = json.loads((FOLDER / f"{shape.kind}.json").read_text())
    sockets = shape.nodes if shape.cores % shape.nodes == 0 else 1
    nic = {"name": "ens5", "driver": shape.driver, "place": "0000:00:05.0", "queues": shape.queues, "node": -1}
    description = {
        "shape": {
            "sockets": sockets,
            "cores": shape.cores // sockets,
            "threads": shape.threads,
            "nodes": sockets,
        },
        "nics": [nic if shape.driver != "vif" else {**nic, "name": "eth0", "place": "vif-0"}],
        "disks": [template["disks"][0], *map(_store, range(shape.stores))],
        "files": dict(template["files"]),
        **({"idle": IDLE if chance is None else IDLE_OF_OLD_KERNELS} if shape.sleeps else {}),
    }
    if PRODUCT in description["files"] and not shape.kind.startswith("xen"):
        description["files"][PRODUCT] = f"{name}\n"
    files = built(description)
    if shape.memory_mib:
        files["/proc/meminfo"] = f"MemTotal: {shape.memory_mib * 1024 * 96 // 100} kB\nHugepagesize: 2048 kB\n"
    rings = {"ens5": [16384, 1024, 1024, 1024]} if shape.driver == "ena" else {}
    if chance is not None:
        _tune_by_hand(files, rings, chance)
    return MemoryHost(files, rings)


def _store(number: int) -> Dict[str, Any]:
    return {"name": f"nvme{number + 1}n1", "device": f"0000:00:1{number}.0", "model": STORE}


def _tune_by_hand(files: Dict[str, str], rings: Dict[str, List[int]], chance: random.Random) -> None:
    """Raise some of these limits, and move interrupts."""
    for key, most in RAISED.items():
        if chance.random() < 0.7:
            least = [int(word) for word in defaults()[key.replace("/", ".")].split()]
            files[f"/proc/sys/{key}"] = "\t".join(str(chance.randint(a, b)) for a, b in zip(least, most)) + "\n"
    if chance.random() < 0.5:
        files["/proc/sys/net/ipv4/tcp_keepalive_time"] = f"{chance.randint(30, 400)}\n"
    if chance.random() < 0.5:
        files["/proc/sys/vm/swappiness"] = f"{chance.randint(0, 100)}\n"
    if chance.random() < 0.7:
        low = chance.choice([1024, 2048, 15000, 32768])
        files["/proc/sys/net/ipv4/ip_local_port_range"] = f"{low}\t{chance.randint(low + 20000, 65535)}\n"
    if chance.random() < 0.5:
        files["/proc/sys/net/core/rps_sock_flow_entries"] = f"{chance.choice([4096, 32768, 1 << 18])}\n"
        flows = {path: f"{chance.choice([256, 8192, 1 << 16])}\n" for path in files if path.endswith("/rps_flow_cnt")}
        files.update(flows)
    for ring in rings.values():
        ring[2] = chance.choice([1024, 2048, 8192, 16384])
    online = files["/sys/devices/system/cpu/online"].strip().rpartition("-")[2]
    for path in files:
        if path.endswith("/queue/read_ahead_kb") and chance.random() < 0.5:
            files[path] = f"{chance.choice([256, 2048, 4096, 16384])}\n"
        if path.endswith("/effective_affinity_list"):
            files[path] = f"{chance.randint(0, int(online))}\n"
