# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Knobs taken over from tuned, after a restart of tuned: the values that the findings named win."""

from __future__ import annotations

from testinfra.host import Host


def test_tuned_has_set_the_huge_pages_again(host: Host) -> None:
    assert host.check_output("cat /sys/kernel/mm/transparent_hugepage/enabled") == "always madvise [never]"


def test_our_file_decides_the_sysctl(host: Host) -> None:
    assert host.check_output("sysctl -n net.core.busy_poll net.core.busy_read").split() == ["0", "0"]
    log = host.check_output("cat /var/log/tuned/tuned.log")
    assert "Overriding sysctl parameter 'net.core.busy_poll' from '50' to '0'" in log


def test_tuned_itself_sees_only_that_difference(host: Host) -> None:
    verified = host.run("truncate -s 0 /var/log/tuned/tuned.log; tuned-adm verify")
    assert verified.rc != 0
    failed = host.check_output("grep 'ERROR.*verify: failed' /var/log/tuned/tuned.log")
    assert {word for word in ("busy_poll", "busy_read", "transparent_hugepages") if word in failed} == {
        "busy_poll",
        "busy_read",
    }
