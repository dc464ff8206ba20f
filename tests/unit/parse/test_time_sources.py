# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sources of chrony and systemd-timesyncd, and nothing else of their files."""

from __future__ import annotations

from typing import Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import time_sources

CHRONY = """\
# server 169.254.169.123
! pool ignored.example.com
Server 169.254.169.123 prefer iburst minpoll 4 maxpoll 4
pool 2.amazon.pool.ntp.org iburst
peer 10.0.0.7
server 0.time.aws.com
server fd00:ec2::123 noselect
refclock PHC /dev/ptp0:extpps poll 2
refclock SHM 0
makestep 1.0 3
key hunter2
"""


def test_the_sources_of_chrony() -> None:
    expected = {"169.254.169.123": 1, "another server": 2, "time.aws.com": 1, "PTP device": 1}
    assert time_sources.chrony(CHRONY) == expected
    assert time_sources.chrony(time_sources.render(expected)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[Time]\nNTP=169.254.169.123 ntp.example.com\n", {"169.254.169.123": 1, "another server": 1}),
        ("[Time]\n#NTP=169.254.169.123\n", {}),
        ("FallbackNTP=ntp.ubuntu.com\nNTP=169.254.169.123\n", {"169.254.169.123": 1}),
        ("NTP=ntp.example.com\nNTP=\nNTP=169.254.169.123\n", {"169.254.169.123": 1}),
        ("NTP=time.aws.com.\n", {"time.aws.com": 1}),
    ],
)
def test_the_servers_of_timesyncd(text: str, expected: Dict[str, int]) -> None:
    assert time_sources.timesyncd(text) == expected
    assert time_sources.timesyncd(time_sources.render(expected)) == expected


@pytest.mark.parametrize("line", ["server", "refclock PHC", "refclock PHC /etc/shadow", "server \x1b[31m"])
def test_a_line_without_a_source(line: str) -> None:
    found: Dict[str, int] = time_sources.chrony(line)
    assert found == {}
