# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cloud modules' stand-in for AWS, for metrics of CloudWatch."""

from __future__ import annotations

from tests.unit.cloud.conftest import aws, environment

__all__ = ["aws", "environment"]
