# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Apache Kafka. PRIVATE to the collection."""

from __future__ import annotations

from .program import Program

PROGRAM = Program(
    "Apache Kafka",
    "jvm",
    processes=("kafka",),
    left="100,000 open files for its unit, and two mapped areas per segment of a log: `memory.max_map_count` "
    "depends on your topics, and `jvm` sets 1,048,576",
)
