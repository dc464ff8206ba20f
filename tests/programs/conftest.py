# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every judge needs."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Iterator

import pytest

from tests.unit.conftest import Modules


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Modules:
    return Modules(capsys)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that everybody may use, as the server runs as nobody."""
    with tempfile.TemporaryDirectory(prefix="nearmetal-") as folder:
        os.chmod(folder, 0o777)
        yield Path(folder)
