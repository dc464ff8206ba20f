# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""After the restore and one reboot, the kernel is as it was before nearmetal."""

from __future__ import annotations

from testinfra.host import Host


def test_it_took_one_more_reboot(host: Host) -> None:
    assert host.check_output("last -x reboot | grep -c ^reboot") == "3"


def test_the_kernel_has_the_arguments_of_before(host: Host) -> None:
    assert host.check_output("cut -d' ' -f2- /proc/cmdline") == host.check_output("cat /root/before/cmdline")


def test_the_kernels_files_are_as_before(host: Host) -> None:
    before = host.check_output("cat /root/before/kernel")
    assert host.check_output("cd /sys; cut -d: -f1 /root/before/kernel | xargs grep -H .") == before


def test_nothing_of_nearmetal_is_left(host: Host) -> None:
    assert host.check_output("find / -xdev -name '*nearmetal*' -not -path '/proc/*'") == ""
