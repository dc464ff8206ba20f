# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.fleet import Fleet


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    """Hosts that are only variables."""
    return Fleet(tmp_path)
