# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A restored host: as it was, with nothing of ours left."""

from __future__ import annotations

from testinfra.host import Host

CURRENT = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
FILES = (
    "find /etc /usr/local /var/lib -xdev -type f -not -path '/var/lib/systemd/*' -exec sha256sum {} +"
    " | sort -k2 | diff /root/before/files -"
)


def test_the_clock_source_is_the_one_of_before(host: Host) -> None:
    assert host.check_output(f"cat {CURRENT}") == host.check_output("cat /root/before/clocksource")


def test_no_file_differs(host: Host) -> None:
    assert host.check_output(FILES) == ""


def test_nothing_of_ours_is_left(host: Host) -> None:
    assert host.check_output("find / -xdev -name '*nearmetal*' -not -path '/proc/*'") == ""
