# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The concerns, in the order in which they are planned and applied. PRIVATE to the collection."""

from __future__ import annotations

from importlib import import_module
from typing import Mapping

from .._loaded import Loaded
from .._planning.concern import Concern

# In the order in which they are planned and applied, each with the number of its heading in a report: 1 to 9 as in
# AWS's talk of 2017, 10 for all others. A report reads the numbers here, because loading all concerns takes longer than
# the rest of it.
HEADINGS: Mapping[str, int] = {
    "clocksource": 2,
    "smt": 6,
    "cpu_power": 3,
    "hugepages": 6,
    "memory": 6,  # after hugepages: with them the kernel moves vm.min_free_kbytes
    "numa": 6,
    "kernel_check": 5,
    "network_stack": 8,  # before network_irq: after new rings a driver requests its interrupts again, on other CPUs
    "network_irq": 8,
    "network_routes": 8,
    "block_storage": 7,
    "blkfront_check": 7,
    "service_check": 6,
}


def _load(name: str) -> Concern:
    concern: Concern = import_module(f"{__package__}.{name}").CONCERN
    return concern


CONCERNS: Mapping[str, Concern] = Loaded(HEADINGS, _load)
