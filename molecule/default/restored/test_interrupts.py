# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A restored host: each interrupt has its earlier affinity."""

from __future__ import annotations

from testinfra.host import Host


def test_interrupts_may_go_where_they_might_before(host: Host) -> None:
    assert host.check_output("grep -H . /proc/irq/*/smp_affinity_list | diff /root/before/interrupts -") == ""
