# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""After a kernel upgrade: the newer kernel gets the argument too."""

from __future__ import annotations

from testinfra.host import Host

DEFAULT = (
    "sed -n '/BEGIN .*10_linux/,/END .*10_linux/ s/^[[:space:]]*linux[[:space:]]*//p' /boot/grub/grub.cfg | head -1"
)


def test_the_newer_kernel_has_the_argument(host: Host) -> None:
    kernel, *arguments = host.check_output(DEFAULT).split()
    assert kernel == "/boot/vmlinuz-99.0.0"
    assert arguments[-1] == "tsc=reliable"
