# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A paravirtual guest that booted with a kernel argument which nearmetal wrote to its menu.lst."""

from __future__ import annotations

from testinfra.host import Host

ARGUMENT = "xen_blkfront.max_indirect_segments=256"


def test_the_kernel_was_booted_with_it(host: Host) -> None:
    assert host.check_output("cat /proc/cmdline").endswith(f" {ARGUMENT}")
    assert host.check_output("cat /sys/module/xen_blkfront/parameters/max_indirect_segments") == "256"


def test_only_the_lines_that_boot_a_kernel_have_it(host: Host) -> None:
    changed = host.check_output("diff /root/menu.lst /boot/grub/menu.lst | grep '^>'").splitlines()
    assert len(changed) == 2
    assert all(line.endswith(f" {ARGUMENT}") for line in changed)
    assert not any(line.endswith(f"single {ARGUMENT}") for line in changed)


def test_the_old_menu_is_kept_beside_it(host: Host) -> None:
    assert host.check_output("cmp /root/menu.lst /boot/grub/menu.lst.nearmetal-old") == ""
