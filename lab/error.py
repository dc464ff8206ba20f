# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one error of the lab."""

from __future__ import annotations


class LabError(Exception):
    """One clear sentence that says what went wrong and what to do; it may end with the tail of a log."""
