# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One running instance without ENA, in a fake AWS whose time costs nothing."""

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


@pytest.fixture
def instance(aws: FakeAws) -> str:
    """A running instance without ENA."""
    return aws.add(1, "r4.large", EnaSupport=False)
