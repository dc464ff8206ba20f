# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An instance of the image after each change of its type, as its own kernel shows it."""

from __future__ import annotations

import pytest
from testinfra.host import Host

from lab.host import instance, planned

# Type → CPUs, nodes, and the CPUs that share the packets of its NIC's one queue: all but those of the core that is
# interrupted.
SIZES = {"m5.2xlarge": (8, 2, 6), "m5.4xlarge": (16, 2, 14), "m5.large": (2, 1, 0)}
QUEUE = "/sys/class/net/ens5/queues/rx-0"
INTERRUPTS = (
    "device=$(basename $(readlink /sys/class/net/ens5/device));"
    " awk -v \"queue=$device-(input|output)\" '$NF ~ queue {print $1 + 0}' /proc/interrupts"
)


@pytest.fixture(scope="module", autouse=True)
def planned_for_this_type(host: Host) -> None:
    """Wait for the unit, which plans while the boot goes on."""
    assert planned.wait(instance.find(host.backend.get_hostname())) == "inactive"
    assert host.run("nearmetal status").rc == 0, host.check_output("nearmetal status; journalctl -b -u nearmetal")


@pytest.fixture(scope="module")
def size(host: Host) -> "tuple[int, int, int]":
    """CPUs, nodes and helping CPUs of the type."""
    return SIZES[host.check_output("cat /sys/class/dmi/id/product_name")]


def test_the_disk_runs_on_another_machine(host: Host, size: "tuple[int, int, int]") -> None:
    assert int(host.check_output("nproc")) == size[0]
    assert int(host.check_output("lscpu -p=NODE | grep -v '#' | sort -u | wc -l")) == size[1]
    assert host.check_output("cat /sys/class/dmi/id/board_asset_tag") not in host.check_output("cat /root/baker")


def test_its_clock_is_the_fast_one(host: Host) -> None:
    assert host.check_output("cat /sys/devices/system/clocksource/clocksource0/current_clocksource") == "tsc"


def test_packets_are_shared_as_this_size_needs_it(host: Host, size: "tuple[int, int, int]") -> None:
    numbers = host.check_output(INTERRUPTS).split()
    assert len(numbers) == 2
    (cpu,) = {host.check_output(f"cat /proc/irq/{number}/smp_affinity_list") for number in numbers}
    core = host.check_output(f"cat /sys/devices/system/cpu/cpu{int(cpu)}/topology/thread_siblings")
    helpers = (1 << size[0]) - 1 & ~mask(core)
    assert mask(host.check_output(f"cat {QUEUE}/rps_cpus")) == helpers
    assert helpers.bit_count() == size[2]


def test_a_table_of_flows_is_there_if_they_are_shared(host: Host, size: "tuple[int, int, int]") -> None:
    entries = "32768" if size[2] else "0"
    assert host.check_output(f"cat {QUEUE}/rps_flow_cnt") == entries
    assert host.check_output("cat /proc/sys/net/core/rps_sock_flow_entries") == entries


def test_memory_stays_on_its_node(host: Host) -> None:
    # On two nodes the kernel starts with 1, although the baked host, with one node, started with 0.
    assert host.check_output("cat /proc/sys/kernel/numa_balancing") == "0"


def test_the_journal_holds_nothing_of_the_baker(host: Host) -> None:
    assert host.run("grep -r -i -F -f /root/baker /var/lib/nearmetal").rc == 1


def mask(text: str) -> int:
    """A set of CPUs as the kernel prints it: hexadecimal, a comma after each 32 bits."""
    return int(text.replace(",", ""), 16)
