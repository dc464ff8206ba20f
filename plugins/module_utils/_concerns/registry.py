# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The concerns, in the order in which they are planned and done: a list. PRIVATE to the collection."""

from __future__ import annotations

from typing import List

from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns import (
    blkfront_check,
    block_storage,
    clocksource,
    cpu_power,
    hugepages,
    kernel_check,
    network_irq,
    network_stack,
    numa,
    smt,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.concern import Concern

CONCERNS: List[Concern] = [
    clocksource.CONCERN,
    smt.CONCERN,
    cpu_power.CONCERN,
    hugepages.CONCERN,
    numa.CONCERN,
    kernel_check.CONCERN,
    network_stack.CONCERN,  # before network_irq: new rings make a driver request its interrupts anew, elsewhere
    network_irq.CONCERN,
    block_storage.CONCERN,
    blkfront_check.CONCERN,
]
