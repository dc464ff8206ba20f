# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The concerns, in the order in which they are planned and applied. PRIVATE to the collection."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Iterator, Mapping

from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.concern import Concern

if TYPE_CHECKING:
    # Never run: these imports make Ansible send every concern, of which a run loads the wanted ones.
    from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns import (
        blkfront_check,
        block_storage,
        clocksource,
        cpu_power,
        hugepages,
        kernel_check,
        memory,
        network_irq,
        network_routes,
        network_stack,
        numa,
        service_check,
        smt,
    )

    SENT = (
        blkfront_check,
        block_storage,
        clocksource,
        cpu_power,
        hugepages,
        kernel_check,
        memory,
        network_irq,
        network_routes,
        network_stack,
        numa,
        service_check,
        smt,
    )

_NAMES = (
    "clocksource",
    "smt",
    "cpu_power",
    "hugepages",
    "memory",  # after hugepages: with them the kernel moves vm.min_free_kbytes
    "numa",
    "kernel_check",
    "network_stack",  # before network_irq: after new rings a driver requests its interrupts again, on other CPUs
    "network_irq",
    "network_routes",
    "block_storage",
    "blkfront_check",
    "service_check",
)


class _Concerns(Mapping[str, Concern]):
    """Name → concern, each loaded on first use: loading all of them costs a small host milliseconds."""

    def __getitem__(self, name: str) -> Concern:
        if name not in _NAMES:
            raise KeyError(name)
        concern: Concern = import_module(f"{__package__}.{name}").CONCERN
        return concern

    def __contains__(self, name: object) -> bool:
        return name in _NAMES

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)


CONCERNS: Mapping[str, Concern] = _Concerns()
