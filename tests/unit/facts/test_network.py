# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""NICs as facts: the interrupts of a NIC, the interfaces below a bond, the allowed requests to a driver."""

from __future__ import annotations

import json
import struct
import time
from pathlib import Path
from typing import Any, Dict, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts import network, network_sample
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import ethtool

from tests.support.hosts import lay_out
from tests.support.kernel.nics import nic_files

ENA = {"name": "ens5", "driver": "ena", "place": "0000:00:05.0", "queues": 2, "node": 0}
VF = {"name": "ens3", "driver": "ixgbevf", "place": "0000:00:03.0", "queues": 2}
VIRTIO = {"name": "eth0", "driver": "virtio_net", "place": "virtio0", "queues": 2}


def observed(root: Path, cpus: int, *nics: Dict[str, Any], **changes: str) -> network.NetworkFacts:
    lay_out(root, {**nic_files(cpus, list(nics)), **changes})
    return network.observe(Host(str(root)))


@pytest.mark.parametrize("command", [0x3D, 0x11, 0x0F, 0x3B, 0x02, 0x34])
def test_a_host_that_only_reads_never_changes_a_driver(command: int) -> None:
    with pytest.raises(ValueError, match="only reads"):
        Host().ethtool("lo", struct.pack("=I", command) + bytes(256))


def test_each_driver_s_interrupts_are_found(root: Path) -> None:
    found = observed(root, 4, ENA, VF, VIRTIO).as_dict()["interfaces"]
    assert {name: list(nic["interrupts"]) for name, nic in found.items()} == {
        "ens5": ["0", "1"],
        "ens3": ["0", "1"],
        "eth0": ["rx-0", "tx-0", "rx-1", "tx-1"],
    }
    assert (found["ens5"]["node"], found["ens3"]["node"]) == (0, None)


def test_the_mailbox_of_ixgbevf_is_no_queue_but_all_that_netfront_may_have(root: Path) -> None:
    table = "  CPU0 CPU1\n 30: 1 0 xen-dyn-event     eth0\n 31: 1 0 xen-pirq-msi-x     ens3\n"
    front = {"name": "eth0", "driver": "vif", "place": "vif-0", "queues": 1}
    single = {**VF, "queues": 1}
    found = observed(root, 2, front, single, **{"/proc/interrupts": table}).as_dict()["interfaces"]
    assert found["eth0"]["interrupts"] == {"0": 30}
    assert found["ens3"]["interrupts"] == {}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("eno1-tx-0", "eno1-rx-1", "eno1-rx-2"), {"rx-0": 31, "tx-0": 30, "rx-1": 32}),
        (("eno1-0", "eno1-txrx-1", "eno1-txrx-2"), {"0": 31, "1": 32}),
        (("eno1-0", "eno1-txrx-1", "eno1-rx-2"), {"0": 31, "rx-1": 32}),
    ],
)
def test_vectors_of_tg3_count_from_one_behind_that_of_the_link(
    root: Path, names: Tuple[str, ...], expected: Dict[str, int]
) -> None:
    lines = "".join(f" {30 + count}: 1 0 PCI-MSI {count}-edge  {name}\n" for count, name in enumerate(names))
    nic = {"name": "eno1", "driver": "ena", "place": "0000:01:00.0", "queues": 2}
    link = {"/sys/devices/pci0000:00/0000:01:00.0/driver": "-> ../../../bus/pci/drivers/tg3"}
    found = observed(root, 2, nic, **{"/proc/interrupts": "  CPU0 CPU1\n" + lines}, **link)
    assert found.as_dict()["interfaces"]["eno1"]["interrupts"] == expected
    assert found.nics[0].surplus == ()


def test_bonds_and_vlans_stand_for_what_is_below_them(root: Path) -> None:
    found = observed(
        root,
        2,
        ENA,
        VF,
        **{f"/sys/class/net/bond0/lower_{name}": "" for name in ("ens3", "ens5")},
        **{"/sys/class/net/bond0.7/lower_bond0": "", "/sys/class/net/loop/lower_loop": ""},
    )
    assert sorted(found.nics_of("bond0.7")) == ["ens3", "ens5"]
    assert found.nics_of("ens5") == ("ens5",)
    assert found.nics_of("loop") == found.nics_of("nothing") == ()


def test_hostile_files_are_no_facts(root: Path) -> None:
    folder = "/sys/class/net/ens5"
    lay_out(
        root,
        {
            **nic_files(2, [ENA]),
            f"{folder}/queues/rx-0/rps_cpus": "no mask\n",
            f"{folder}/queues/rx-1/rps_flow_cnt": "²\n",
            f"{folder}/mtu": "-1\n",
            f"{folder}/ifindex": "9" * 40 + "x",
            "/proc/irq/default_smp_affinity": "zz\n",
            "/proc/net/route": "a b c\n\x00\n",
            "/proc/stat": "cpu0 1 2\ncpu9999999 1 1 1 1 1 1 1\n",
        },
    )
    found = network.observe(Host(str(root))).as_dict()
    assert found["interfaces"]["ens5"]["rps"] == {"rx-1": ""}
    assert found["interfaces"]["ens5"]["mtu"] is None
    assert found["default_affinity"] is None
    assert found["interrupt_load"] == {}


def test_a_short_answer_of_a_driver_is_ignored() -> None:
    for size in range(36):
        assert ethtool.numbers(bytes(size), ethtool.CHANNELS) == {}


def test_a_sample_counts_what_happens_within_it(root: Path) -> None:
    lay_out(root, nic_files(2, [ENA]))

    def wait(_seconds: float) -> None:
        (root / "proc/stat").write_text("cpu0 100 0 100 9050 0 10 60 0 0 0\ncpu1 100 0 100 9075 0 10 10 25 0 0\n")

    found = network_sample.observe(Host(str(root)), 1, wait)
    assert found["interrupt_load"] == {"0": 0.5, "1": 0.0}
    assert found["steal"] == 0.125


def test_a_host_of_192_cpus_and_64_queues_is_small_and_quick(root: Path) -> None:
    nics = [{**ENA, "name": f"ens{number}", "place": f"0000:00:{number:02x}.0", "queues": 32} for number in (5, 6)]
    lay_out(root, nic_files(192, nics))
    host = Host(str(root))
    start = time.process_time()
    found = network.observe(host).as_dict()
    seconds = time.process_time() - start
    assert len(json.dumps(found)) < 64 * 1024
    # The budget is 0.1 s on a real /; a test's root resolves every link by itself and is several times slower.
    assert seconds < 2
