# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Neighbours and nearmetal each keep their own values: after the first run, their restart, and a reboot."""

from __future__ import annotations

import pytest
from testinfra.host import Host

# The numbers of the interrupts of ens6's two queues, each with one for receiving and one for sending.
QUEUES = (
    'device=$(basename "$(readlink /sys/class/net/ens6/device)");'
    ' grep -lxE "$device-(input|output)\\.[01]" /sys/kernel/irq/*/actions | cut -d/ -f5'
)
THP = "/sys/kernel/mm/transparent_hugepage"


def cat(host: Host, files: str) -> "list[str]":
    return host.check_output(f"cat {files}").splitlines()


def test_the_neighbours_run_as_before(host: Host) -> None:
    assert host.check_output("tuned-adm active").startswith("Current active profile: site")
    services = "tuned irqbalance systemd-networkd"
    assert host.check_output(f"systemctl is-active {services}").split() == ["active"] * 3


@pytest.mark.parametrize(
    ("files", "value"),
    [
        (f"{THP}/enabled", "always madvise [never]"),
        ("/sys/devices/system/cpu/cpufreq/policy*/scaling_governor", "performance"),
        ("/sys/devices/system/cpu/cpu*/cpuidle/state*/disable", "0"),
        ("/proc/sys/kernel/numa_balancing", "0"),
        ("/proc/sys/net/core/busy_poll /proc/sys/net/core/busy_read", "50"),
        ("/proc/sys/net/ipv4/tcp_keepalive_time", "600"),
        ("/sys/class/net/ens6/mtu", "9001"),
        ("/sys/class/net/ens7/mtu", "1460"),
        ("/sys/block/vd[ab]/queue/read_ahead_kb", "1024"),
    ],
)
def test_a_foreign_knob_has_its_owners_value(host: Host, files: str, value: str) -> None:
    assert set(cat(host, files)) == {value}


@pytest.mark.parametrize(
    ("files", "value"),
    [
        (f"{THP}/defrag", "always defer [defer+madvise] madvise never"),
        ("/proc/sys/net/core/somaxconn", "8192"),
        ("/sys/class/net/ens[567]/tx_queue_len", "2000"),
        ("/sys/block/vd[ab]/queue/scheduler", "[mq-deadline] none"),
    ],
)
def test_a_knob_without_an_owner_has_our_value(host: Host, files: str, value: str) -> None:
    assert set(cat(host, files)) == {value}


def test_no_file_of_nearmetal_sets_a_foreign_knob(host: Host) -> None:
    kept = host.check_output(
        "cat /etc/sysctl.d/*nearmetal* /etc/tmpfiles.d/nearmetal* /etc/udev/rules.d/90-nearmetal-*"
    )
    foreign_words = ("busy_", "keepalive", "hugepage/enabled", "scaling_governor", "numa_balancing", "read_ahead")
    assert [word for word in foreign_words if word in kept] == []
    assert "net.core.somaxconn = 8192" in kept


def test_irqbalance_itself_says_that_it_moves_the_disks_and_leaves_the_queues_alone(host: Host) -> None:
    device = host.check_output('basename "$(readlink /sys/class/net/ens6/device)"')
    moved_interrupts = host.check_output("python3 /root/ask_irqbalance.py").split()
    assert [name for name in moved_interrupts if name.startswith(f"{device}-")] == []
    assert [name for name in moved_interrupts if name.endswith("-req.0")] != []
    assert "--interval=2" in host.check_output("tr '\\0' ' ' < /proc/$(pidof irqbalance)/cmdline")


def test_the_queues_stay_where_they_were_placed(host: Host) -> None:
    places = [cat(host, f"/proc/irq/{number}/smp_affinity_list")[0] for number in host.check_output(QUEUES).split()]
    assert sorted(places) == ["0", "0", "1", "1"]


def test_the_interface_of_amazon_ec2_net_utils_has_its_address(host: Host) -> None:
    assert "10.0.3.15" in host.check_output("ip -4 -brief address show ens6")
