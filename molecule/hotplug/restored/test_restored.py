# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A restored host is as before, although a tuned NIC was removed and an added disk is still attached."""

from __future__ import annotations

from testinfra.host import Host


def test_the_nic_that_stayed_is_as_it_was(host: Host) -> None:
    assert host.check_output("cat /sys/class/net/ens5/tx_queue_len") == "1000"
    assert host.check_output("cat /sys/class/net/ens5/queues/rx-0/rps_cpus") == "0"


def test_both_disks_are_as_the_kernel_starts_them(host: Host) -> None:
    for disk in ("vda", "vdb"):
        queue = f"/sys/block/{disk}/queue"
        found = host.check_output(f"cat {queue}/scheduler {queue}/read_ahead_kb").split()
        assert found == ["[none]", "mq-deadline", "128"]


def test_nothing_of_nearmetal_is_left(host: Host) -> None:
    assert host.check_output("find / -xdev -name '*nearmetal*' -not -path '/proc/*'") == ""


def test_systemd_knows_no_unit_of_nearmetal(host: Host) -> None:
    # If there is none, only systemctl's exit code says so.
    assert host.run("systemctl list-unit-files 'nearmetal*' --no-legend").stdout == ""
