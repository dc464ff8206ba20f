# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole numbers as a kernel writes them, in what a host or a user says. PRIVATE to the collection."""

from __future__ import annotations

_MOST_DIGITS = 20  # of 64 bits


def is_number(text: str) -> bool:
    """Whether int() gives the number that the text means: it refuses some digits, and thousands of them."""
    return text.isdigit() and text.isascii() and len(text) <= _MOST_DIGITS
