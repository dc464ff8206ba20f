# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a value reads in a line of the terminal: a table by its values, never as JSON, never longer than its column."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._words import in_words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "absent"),
        ("", "absent"),
        ({}, "absent"),
        (False, "false"),
        (4096, "4096"),
        ("tsc", "tsc"),
        ("x" * 40, "x" * 23 + "…"),
        ({"0": "performance", "1": "performance"}, "performance × 2"),
        ({"0": "performance"}, "performance"),
        ({"0": 0, "1": 2, "2": None}, "0, 2, absent"),
        ({"eth0": {"rx-0": "0", "rx-1": "2"}}, "0, 2"),
        ({str(queue): f"cpu {queue}" for queue in range(64)}, "64 values"),
        (["a", "b"], "a, b"),
    ],
)
def test_in_words(value: Any, words: str) -> None:
    assert in_words(value, "absent", 24) == words
