# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A tuned host, as its own kernel and tools show it."""

from __future__ import annotations

from testinfra.host import Host

CURRENT = "/sys/devices/system/clocksource/clocksource0/current_clocksource"


def test_the_host_is_what_it_says_it_stands_for(host: Host) -> None:
    assert host.check_output("cat /sys/devices/virtual/dmi/id/product_name") == "m5.2xlarge"
    assert host.check_output("lscpu -p=SOCKET,CORE,CPU | grep -cv '#'") == "8"
    assert host.check_output("lscpu -p=SOCKET | grep -v '#' | sort -u | wc -l") == "2"
    assert host.check_output("lscpu -p=NODE | grep -v '#' | sort -u | wc -l") == "2"


def test_it_started_on_a_slow_clock_and_runs_on_tsc(host: Host) -> None:
    assert host.check_output("cat /root/before/clocksource") == "hpet"
    assert host.check_output(f"cat {CURRENT}") == "tsc"


def test_the_kernel_itself_logged_the_switch(host: Host) -> None:
    assert host.check_output("dmesg | grep -o 'Switched to clocksource.*' | tail -n 1").endswith("tsc")


def test_the_journal_is_for_root_alone(host: Host) -> None:
    modes = host.check_output("stat -c '%a %U' /var/lib/nearmetal /var/lib/nearmetal/journal.json")
    assert modes == "700 root\n600 root"
