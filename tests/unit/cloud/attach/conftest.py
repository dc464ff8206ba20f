# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fake AWS without HTTP between, whose time costs nothing."""

from __future__ import annotations

from typing import Any

import boto3
import pytest

from tests.support.aws.fake_aws import FakeAws
from tests.support.aws.fake_session import FakeSession


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> FakeAws:
    """The fake AWS, without HTTP between."""
    fake = FakeAws()
    monkeypatch.setattr(boto3, "Session", lambda **_options: FakeSession(fake))
    return fake


@pytest.fixture(autouse=True)
def passing(clock: Any) -> Any:
    """Waiting costs nothing."""
    return clock
