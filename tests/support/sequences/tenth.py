# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tenth of a long list that `make test` takes: another one each day, so that ten days have all of it."""

from __future__ import annotations

import os
from typing import List, Sequence, TypeVar

Item = TypeVar("Item")


def tenth(items: Sequence[Item]) -> List[Item]:
    """Every tenth item, by NEARMETAL_DAY, the days since 1970; without it, all items."""
    day = os.environ.get("NEARMETAL_DAY")
    return list(items if day is None else items[int(day) % 10 :: 10])
