# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A tuned guest of a real Xen, of whichever kind, as its own kernel and tools show it."""

from __future__ import annotations

import pytest
from testinfra.host import Host


@pytest.mark.parametrize("disk", ["xvda", "xvdb"])
def test_the_kernel_logged_persistent_grants_for_each_disk(host: Host, disk: str) -> None:
    line = host.check_output(f"dmesg | grep 'blkfront: {disk}:'")
    assert "persistent grants: enabled;" in line
    assert "indirect descriptors: enabled;" in line


def test_the_front_end_uses_its_defaults(host: Host) -> None:
    folder = "/sys/module/xen_blkfront/parameters"
    assert host.check_output(f"cat {folder}/feature_persistent {folder}/max_indirect_segments").split() == ["Y", "32"]


def test_the_vif_has_one_queue(host: Host) -> None:
    assert host.check_output("readlink /sys/class/net/eth0/device/driver").endswith("/vif")
    assert host.check_output("ls /sys/class/net/eth0/queues | grep -c rx-") == "1"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("/proc/sys/net/core/somaxconn", "8192"),
        ("/sys/block/xvdb/queue/read_ahead_kb", "256"),
        ("/proc/sys/net/ipv4/tcp_keepalive_time", "300"),
        ("/proc/sys/net/ipv4/tcp_slow_start_after_idle", "0"),
    ],
)
def test_the_kernel_has_the_value(host: Host, file: str, text: str) -> None:
    assert host.check_output(f"cat {file}") == text


def test_the_unit_plans_again(host: Host) -> None:
    assert host.check_output("systemctl is-enabled nearmetal.timer") == "enabled"
