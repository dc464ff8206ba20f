# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HAProxy. PRIVATE to the collection."""

from __future__ import annotations

from .program import Program

PROGRAM = Program(
    "HAProxy",
    "web",
    processes=("haproxy",),
    packages=("haproxy",),
    left="interrupts on cores of their own, which depends on its `cpu-map`: see `network_irq.policy`. A maintainer "
    "calls irqbalance counter-productive",
)
