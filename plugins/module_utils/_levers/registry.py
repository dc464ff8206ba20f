# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every lever there is, by name: a list. PRIVATE to the collection."""

from __future__ import annotations

from typing import Dict, List, Protocol, Sequence, TypeVar

from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts import ethtool
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.base import Lever
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.block import QueueFile, Scheduler
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.boot_arguments.lever import BootArguments
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.clock import ClockSource
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.files import NativeFile
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.hugepages import (
    KhugepagedDefrag,
    Reserved,
    Transparent,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.hugetlbfs import Mount
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.irqbalance import IrqbalanceArguments
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.network import Affinity, Bql, Rfs, Rps, Xps
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.nic_settings import (
    Coalesce,
    Offloads,
    Queues,
    Rings,
    Sysfs,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.power import FrequencyTable, IdleDisabled, Turbo
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.smt import OfflineCpus, SmtControl
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.sysctl import Sysctl
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.unit import Agent, Enabled
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import block_queue

_LEVERS: List[Lever] = [
    ClockSource("clock.current"),
    SmtControl("smt.control"),
    OfflineCpus("smt.offline"),
    IdleDisabled("power.idle_disabled"),
    FrequencyTable("power.governors", "scaling_governor"),
    FrequencyTable("power.preferences", "energy_performance_preference"),
    Turbo("power.turbo"),
    Transparent("hugepages.thp", "enabled"),
    Transparent("hugepages.thp_defrag", "defrag"),
    Transparent("hugepages.thp_shmem", "shmem_enabled"),
    KhugepagedDefrag("hugepages.khugepaged_defrag", "khugepaged/defrag"),
    Reserved("hugepages.pages"),
    Mount("hugepages.mounts"),
    BootArguments("boot.arguments"),
    Queues("network.queues"),
    IrqbalanceArguments("irqbalance.arguments", restart=False),
    IrqbalanceArguments("irqbalance.in_force", restart=True),
    Affinity("network.affinity"),
    Rps("network.rps"),
    Rfs("network.rfs"),
    Xps("network.xps"),
    Bql("network.bql"),
    Rings("network.rings", ("rx", "tx")),
    Coalesce("network.coalesce", ethtool.COALESCE),
    Offloads("network.offloads", ethtool.OFFLOADS),
    Sysfs("network.mtu", "mtu"),
    Sysfs("network.txqueuelen", "tx_queue_len"),
    Scheduler(),
    *(QueueFile(attribute) for attribute in block_queue.ATTRIBUTES if attribute != "scheduler"),
    Sysctl("sysctl"),
    NativeFile("files"),
    Enabled("unit.enabled"),
    Agent("unit.agent"),
]


class _Step(Protocol):
    """An action, or what the journal has of one."""

    @property
    def what(self) -> str:
        """The name of its lever."""


Step = TypeVar("Step", bound=_Step)

LEVERS: Dict[str, Lever] = {lever.what: lever for lever in _LEVERS}


def lever(what: str) -> Lever:
    """The lever of that name; NearmetalError for a name that isn't in the list."""
    try:
        return LEVERS[what]
    except KeyError:
        raise NearmetalError(f"{what!r} is nothing that nearmetal can change") from None


def way_back(steps: Sequence[Step]) -> List[Step]:
    """The order of the way back: the last step first, but a lever that sets others anew comes before them."""
    order = list(reversed(steps))
    order.sort(key=lambda step: not lever(step.what).first)
    return order
