# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The picture of a metric's pairs; tests/browser has the page."""

from __future__ import annotations

import pytest
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._prove.page import plot


@pytest.mark.parametrize("pairs", range(6, 201))
def test_the_axis_names_a_few_pairs(pairs: int) -> None:
    assert 2 <= len(plot.marked(pairs)) <= 6
