# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A restored and rebooted host: as it was, with nothing of ours left."""

from __future__ import annotations

from testinfra.host import Host

FILES = (
    "find /boot /etc /usr/local /var/lib -xdev -type f -not -path '/var/lib/systemd/*'"
    " -not -path '/var/lib/dhcp/*' -exec sha256sum {} + | sort -k2 | diff /root/before/files -"
)


def test_the_running_kernel_has_what_it_had(host: Host) -> None:
    assert host.check_output("cat /proc/cmdline").split() == host.check_output("cat /root/before/cmdline").split()


def test_no_file_differs(host: Host) -> None:
    assert host.run(FILES).stdout == ""


def test_nothing_of_ours_is_left(host: Host) -> None:
    assert host.check_output("find / -xdev -name '*nearmetal*' -not -path '/proc/*'") == ""
