# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a batch may be tuned: a freeze file, and windows of time."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import List

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._rollout import permission

# 2 November 2026 is a Monday, and winter in Berlin.
WITHIN = [
    ("Mon-Thu 09:00-16:00 UTC", "2026-11-02T09:00+00:00", True),
    ("Mon-Thu 09:00-16:00 UTC", "2026-11-05T15:59+00:00", True),
    ("Mon-Thu 09:00-16:00 UTC", "2026-11-05T16:00+00:00", False),
    ("Mon-Thu 09:00-16:00 UTC", "2026-11-06T10:00+00:00", False),
    ("mon-thu 09:00-16:00", "2026-11-02T08:59+00:00", False),
    ("Mon 09:00-16:00 Europe/Berlin", "2026-11-02T08:30+00:00", True),
    ("Mon 09:00-16:00 Europe/Berlin", "2026-11-02T15:30+00:00", False),
    ("Mon 09:00-16:00 Europe/Berlin", "2026-07-06T07:30+00:00", True),  # in summer an hour earlier
    ("Fri-Mon 00:00-24:00", "2026-11-01T12:00+00:00", True),
    ("Fri-Mon 00:00-24:00", "2026-11-03T12:00+00:00", False),
    ("Mon 22:00-04:00", "2026-11-02T23:00+00:00", True),
    ("Mon 22:00-04:00", "2026-11-03T03:59+00:00", True),
    ("Mon 22:00-04:00", "2026-11-02T03:00+00:00", False),
    ("22:00-04:00", "2026-11-07T01:00+00:00", True),
    ("22:00-04:00", "2026-11-07T12:00+00:00", False),
]


@pytest.mark.parametrize(("window", "moment", "within"), WITHIN)
def test_a_window_has_days_hours_and_a_zone(window: str, moment: str, within: bool) -> None:
    why = permission.outside([window], datetime.fromisoformat(moment).timestamp())
    assert why == (None if within else f"no batch begins outside {window}")


def test_any_window_will_do_and_without_one_it_is_always_time() -> None:
    now = datetime.fromisoformat("2026-11-02T12:00+00:00").timestamp()
    assert permission.outside([], now) is None
    assert permission.outside(["Sun 09:00-16:00", "Mon 09:00-16:00"], now) is None


@pytest.mark.parametrize(
    "window", ["", "nine to five", "Mon-Thu", "Mon 9:00-16:00", "Mon 09:00-09:00", "24:00-03:00", "09:00-24:30"]
)
def test_a_wrong_window_is_said_with_a_right_one(window: str) -> None:
    with pytest.raises(NearmetalError, match=r"rollout\.window"):
        permission.outside([window], 0)


@pytest.mark.parametrize("zone", ["Mars", "Europe", "../etc/passwd"])
def test_a_zone_that_nobody_knows_is_said(zone: str) -> None:
    with pytest.raises(NearmetalError, match=r"rollout\.window"):
        permission.outside([f"09:00-16:00 {zone}"], 0)


STRATA = {"a1": 0, "a2": 0, "a3": 0, "b1": 1, "b2": 1}


@pytest.mark.parametrize(
    ("limit", "away", "said"),
    [
        ("", ["a1", "a2", "a3", "b1", "b2"], []),
        ("1", ["a1", "b1"], []),
        ("1", ["a1", "a3", "b1"], ["2 of 3 hosts of a stratum can't be reached or aren't healthy: a1, a3"]),
        ("50%", ["a1", "b1"], []),
        ("34%", ["a1", "b1"], ["1 of 2 hosts of a stratum can't be reached or aren't healthy: b1"]),
        ("0", ["b2"], ["1 of 2 hosts of a stratum can't be reached or aren't healthy: b2"]),
    ],
)
def test_each_stratum_has_a_limit_of_hosts_that_are_away(limit: str, away: List[str], said: List[str]) -> None:
    assert permission.unavailable(limit, STRATA, away) == said


@pytest.mark.parametrize("limit", ["few", "-1", "1.5", "10 %"])
def test_a_wrong_limit_is_said(limit: str) -> None:
    with pytest.raises(NearmetalError, match=r"rollout\.most_unavailable"):
        permission.unavailable(limit, {}, ())


def test_the_freeze_file_says_why(tmp_path: Path) -> None:
    freeze = tmp_path / "freeze"
    assert permission.frozen("") is None
    assert permission.frozen(str(freeze)) is None
    freeze.write_text("release day\nuntil Friday\n")
    assert permission.frozen(str(freeze)) == f"{freeze} exists: release day; remove it to go on"
    freeze.write_bytes(b"")
    assert permission.frozen(str(freeze)) == f"{freeze} exists; remove it to go on"
    freeze.unlink()
    freeze.symlink_to("nowhere")
    assert permission.frozen(str(freeze)) == f"{freeze} exists; remove it to go on"
