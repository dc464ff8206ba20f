# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host from which an image is made: running values are untouched, and its disk belongs to no instance."""

from __future__ import annotations

from testinfra.host import Host


def test_running_values_are_untouched(host: Host) -> None:
    assert host.check_output("cat /sys/devices/system/clocksource/clocksource0/current_clocksource") == "acpi_pm"
    assert host.check_output("cat /sys/class/net/ens5/queues/rx-0/rps_cpus") == "0"
    assert host.run("systemctl is-active nearmetal.service nearmetal.timer").stdout.split() == ["inactive"] * 2


def test_its_copies_will_tune_themselves(host: Host) -> None:
    assert host.check_output("systemctl is-enabled nearmetal.timer") == "enabled"


def test_the_image_holds_nothing_of_the_baker(host: Host) -> None:
    # 1: grep read every file and found nothing.
    assert host.run("grep -r -i -F -f /root/baker /var/lib/nearmetal").rc == 1
