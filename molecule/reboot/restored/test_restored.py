# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A restored host: GRUB boots it as before, since every file is as it was; nothing of ours is left."""

from __future__ import annotations

from testinfra.host import Host

DEFAULT = (
    "sed -n '/BEGIN .*10_linux/,/END .*10_linux/ s/^[[:space:]]*linux[[:space:]]*//p' /boot/grub/grub.cfg | head -1"
)
FILES = (
    "find /boot /etc /usr/local /var/lib -xdev -type f -not -path '/var/lib/systemd/*'"
    " -not -path '/var/lib/dhcp/*' -exec sha256sum {} + | sort -k2 | diff /root/before/files -"
)


def test_grub_gives_the_kernel_what_it_gave(host: Host) -> None:
    before = host.check_output("cat /root/before/cmdline").split()[1:]
    assert host.check_output(DEFAULT).split()[1:] == before


def test_no_file_differs(host: Host) -> None:
    assert host.check_output(FILES) == ""


def test_nothing_of_nearmetal_is_left(host: Host) -> None:
    assert host.check_output("find / -xdev -name '*nearmetal*' -not -path '/proc/*'") == ""
