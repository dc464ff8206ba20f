# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PostgreSQL. PRIVATE to the collection."""

from __future__ import annotations

from .program import Program

PROGRAM = Program(
    "PostgreSQL",
    "nvme_storage",
    processes=("postgres",),
    left="`hugepages.count` for its `shared_buffers`; `memory.overcommit: never` lowers the chance that the kernel "
    "kills it, if swap and ratio fit the host",
)
