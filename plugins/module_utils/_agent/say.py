# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the command on the host says to people and to the systemd journal. PRIVATE to the collection."""

from __future__ import annotations

import sys


def say(text: str) -> None:
    """One message on standard output."""
    sys.stdout.write(f"{text}\n")


def complain(text: str) -> None:
    """One message on standard error."""
    sys.stderr.write(f"{text}\n")
