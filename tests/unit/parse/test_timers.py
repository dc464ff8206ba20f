# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `systemctl show` says of timers."""

from __future__ import annotations

from ansible_collections.nearmetal.ec2.plugins.module_utils._parse.timers import timers

SHOWN = """Id=apt-daily.timer
LastTriggerUSecMonotonic=1h 2min 3.456789s

LastTriggerUSecMonotonic=0
Id=fstrim.timer

Id=ssh.service
LastTriggerUSecMonotonic=5s

Id=empty.timer
LastTriggerUSecMonotonic=

Id=old.timer
"""


def test_each_timer_and_when_it_last_started_something() -> None:
    assert timers(SHOWN) == {"apt-daily.timer": "1h 2min 3.456789s", "fstrim.timer": "0"}
    assert timers("") == {}
    assert timers("\n\n=\nId\n") == {}


def test_a_host_with_many_timers_or_long_names_fills_no_record() -> None:
    many = "\n\n".join(f"Id=t{number}.timer\nLastTriggerUSecMonotonic={'9' * 1000}" for number in range(2000))
    found = timers(many)
    assert len(found) == 500
    assert {len(last) for last in found.values()} == {255}
    assert timers(f"Id={'a' * 300}.timer\nLastTriggerUSecMonotonic=1s") == {}
