# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The clock sources that the kernel lists."""

from __future__ import annotations

from typing import Optional, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import clocksource


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("xen tsc hpet acpi_pm \n", ("xen", "tsc", "hpet", "acpi_pm")),
        ("tsc kvm-clock acpi_pm \n", ("tsc", "kvm-clock", "acpi_pm")),
        ("arch_sys_counter \n", ("arch_sys_counter",)),
        ("\n", ()),
    ],
)
def test_the_blank_after_the_last_clock_source_is_no_name(text: str, expected: Tuple[str, ...]) -> None:
    assert clocksource.available(text) == expected


@pytest.mark.parametrize(("text", "name"), [("tsc\n", "tsc"), ("", None), ("a b", None), ("../etc", None)])
def test_the_current_clock_source_is_one_name_or_unknown(text: str, name: Optional[str]) -> None:
    assert clocksource.current(text) == name
