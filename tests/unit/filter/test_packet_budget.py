# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter packet_budget, against figures that others computed."""

from __future__ import annotations

from typing import Any, Dict

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.nearmetal.ec2.plugins.filter.packet_budget import FilterModule

budget = FilterModule().filters()["packet_budget"]


@pytest.mark.parametrize(
    ("rate", "options", "nanoseconds", "gbits"),
    [
        (2_000_000, {}, 500.0, 1.344),  # Netflix: frames of 84 bytes on the line, less than 500 ns for each
        (14_880_952, {}, 67.2, 10.0),  # the most that 10 Gbit/s of Ethernet carry
        (812_744, {"frame_bytes": 1518}, 1230.4, 10.0),
        (2_000_000, {"cpus": 4}, 2000.0, 1.344),
    ],
)
def test_the_time_for_each_packet(rate: int, options: Dict[str, Any], nanoseconds: float, gbits: float) -> None:
    found = budget(rate, **options)
    assert found["nanoseconds"] == pytest.approx(nanoseconds, rel=1e-4)
    assert found["line_gbits"] == pytest.approx(gbits, rel=1e-4)


@pytest.mark.parametrize("rate", [0, -1, True, "2000000", None, float("nan"), float("inf")])
def test_what_is_no_rate_is_refused(rate: Any) -> None:
    with pytest.raises(AnsibleFilterError, match=r"packet_budget: the rate is .+; it must be a number above zero$"):
        budget(rate)
