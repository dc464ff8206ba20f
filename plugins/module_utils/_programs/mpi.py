# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MPI. PRIVATE to the collection."""

from __future__ import annotations

from .program import Program

PROGRAM = Program(
    "MPI",
    "hpc",
    left="over EFA: huge pages, which AWS's installer of EFA reserves, and locked memory without a limit",
)
