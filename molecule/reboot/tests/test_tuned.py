# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that was tuned and rebooted, as its own kernel and GRUB show it."""

from __future__ import annotations

from testinfra.host import Host

LINES = "sed -n '/BEGIN .*10_linux/,/END .*10_linux/ s/^[[:space:]]*linux[[:space:]]*//p' /boot/grub/grub.cfg"


def test_it_was_rebooted_once(host: Host) -> None:
    assert host.check_output("cat /proc/sys/kernel/random/boot_id") != host.check_output("cat /root/before/boot_id")
    assert host.check_output("last -x reboot | grep -c ^reboot") == "2"


def test_the_running_kernel_has_its_earlier_arguments_and_nearmetals_at_the_end(host: Host) -> None:
    before = host.check_output("cat /root/before/cmdline").split()
    assert host.check_output("cat /proc/cmdline").split() == [*before, "tsc=reliable"]


def test_recovery_entries_get_no_argument_of_nearmetal(host: Host) -> None:
    lines = host.check_output(LINES).splitlines()
    assert [line.split().count("tsc=reliable") for line in lines] == [0 if " single" in line else 1 for line in lines]
    assert sum(" single" in line for line in lines) == 1


def test_grub_finds_no_fault_in_its_configuration(host: Host) -> None:
    assert host.run("grub-script-check /boot/grub/grub.cfg").rc == 0


def test_the_configuration_of_before_is_kept(host: Host) -> None:
    old = host.check_output("sha256sum < /boot/grub/grub.cfg.nearmetal-old").split()[0]
    assert host.check_output("grep ' /boot/grub/grub.cfg$' /root/before/files").split()[0] == old
