# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host like Graviton that was rebooted by its GRUB for a kernel argument."""

from __future__ import annotations

from testinfra.host import Host


def test_the_running_kernel_has_the_argument_at_the_end(host: Host) -> None:
    assert host.check_output("cat /proc/cmdline").split()[-2:] == ["hugepagesz=2M", "hugepages=24"]


def test_the_pages_are_reserved(host: Host) -> None:
    assert host.check_output("awk '/^HugePages_Total/ {print $2}' /proc/meminfo") == "24"


def test_grub_finds_no_fault_in_its_configuration(host: Host) -> None:
    assert host.run("grub-script-check /boot/grub/grub.cfg").rc == 0
