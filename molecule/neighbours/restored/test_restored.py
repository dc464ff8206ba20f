# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A restored host: the neighbours' own status is as before."""

from __future__ import annotations

from testinfra.host import Host


def test_the_neighbours_are_as_they_were(host: Host) -> None:
    assert host.check_output("/root/neighbours.sh | diff /root/before/neighbours -") == ""


def test_irqbalance_moves_the_queues_again(host: Host) -> None:
    device = host.check_output('basename "$(readlink /sys/class/net/ens6/device)"')
    queues = {f"{device}-{way}.{number}" for way in ("input", "output") for number in (0, 1)}
    assert queues <= set(host.check_output("python3 /root/ask_irqbalance.py").split())
