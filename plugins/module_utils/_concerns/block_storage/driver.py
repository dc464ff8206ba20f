# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""block_storage: what the NVMe driver takes when it is loaded: kernel arguments. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Optional, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.block_storage.choice import NAME, Wishes
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.block_storage.queue import timeout
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.block import LONGEST_MS, BlockFacts
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.disk import EBS, INSTANCE_STORE
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Finding, Plan, Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.boot_argument import Argument, plan_argument
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.join import joined

METHOD, POLL = "method", "poll_queues"
REFERENCE = "ec2.md 2.11"
# nvme became nvme_core in Linux 4.6; the parameter grew from 8 to 32 bits in 4.15.
_NAMES = ("nvme.io_timeout", "nvme_core.io_timeout")
_RENAMED, _WIDENED = (4, 6, 0), (4, 15, 0)
_MOST_OF_8_BITS = 255


def plan_timeout(facts: Facts, block: BlockFacts, wishes: Wishes, wanted: Wanted) -> Plan:
    """The driver's own timeout, under a knob of its own: a run with another method then takes it back."""
    asked = wishes.kinds[EBS].get("io_timeout")
    if wanted.get(METHOD) == "runtime" or asked is None:
        return Plan()
    ebs = [one for one in block.disks if one.kind == EBS]
    if not ebs:
        return Plan(findings=(_told(METHOD, "not_applicable", "no EBS volume here is attached as NVMe"),))
    goal = timeout(EBS, asked)
    seconds = LONGEST_MS if int(goal.value) == LONGEST_MS else -(-int(goal.value) // 1000)
    version = facts.platform.kernel_version if facts.platform is not None else None
    if _narrow(block, version):
        # A larger number isn't cut off: the driver would refuse to load, and the root disk would be missing.
        seconds = min(seconds, _MOST_OF_8_BITS)
    name = _NAMES[0] if version is not None and version < _RENAMED else _NAMES[1]
    change = plan_argument(
        facts,
        Argument(
            concern=NAME,
            knob=METHOD,
            name=name,
            text=f"{name}={seconds}",
            reason="the driver takes it over when it finds a disk, before anything in user space runs",
            reference=REFERENCE,
            wanted_by=wanted.wanted_by("io_timeout"),
        ),
    )
    store = [one.name for one in block.disks if one.kind == INSTANCE_STORE]
    if store and wanted.get(METHOD) == "boot":
        warning = f"it counts for every NVMe disk, so for {', '.join(store)} too: method: both gives each kind its own"
        return joined(change, Plan(findings=(_told(METHOD, "advice", warning),)))
    return change


def _narrow(block: BlockFacts, version: Optional[Tuple[int, int, int]]) -> bool:
    """Whether the driver's parameter has 8 bits; a distribution may have widened it, which a larger value shows."""
    old = version is None or version < _WIDENED
    return old and (block.driver_timeout is None or block.driver_timeout <= _MOST_OF_8_BITS)


def plan_polling(facts: Facts, block: BlockFacts, wanted: Wanted) -> Plan:
    """Queues that are polled instead of interrupting.

    Raises NearmetalError for more queues than this host has CPUs.
    """
    asked = wanted.get(POLL)
    if asked is None:
        return Plan()
    cpus = len((facts.topology.cpus_online if facts.topology is not None else None) or ())
    argument = Argument(
        concern=NAME,
        knob=POLL,
        name="nvme.poll_queues",
        text=f"nvme.poll_queues={asked}" if asked else None,
        reason="the driver sets its queues up when it is loaded",
        reference=REFERENCE,
        wanted_by=wanted.wanted_by(POLL),
    )
    if not asked:
        return plan_argument(facts, argument)
    stop = _no_polling(facts, block)
    if stop is not None:
        return Plan(findings=(stop,))
    if not 0 < asked <= cpus:
        sentence = f"{NAME}.{POLL}: {asked} queues can't be polled by {cpus} CPUs; name 0 to {cpus}"
        if wanted.wanted_by(POLL) != "workload":
            raise NearmetalError(sentence)
        return Plan(findings=(_told(POLL, "not_applicable", sentence),))
    told = [_told(POLL, "advice", "only io_uring with IOPOLL and preadv2 with RWF_HIPRI use them, and burn a CPU each")]
    if asked > 1:
        # io_queue_count_set() of drivers/nvme/host/pci.c: -EINVAL for more than there are possible CPUs.
        warning = (
            f"before this disk starts as a type with fewer than {asked} vCPUs, set it to 0: the driver would refuse"
            " the argument, and as a module not load at all"
        )
        told.append(_told(POLL, "advice", warning))
    return joined(plan_argument(facts, argument), Plan(findings=tuple(told)))


def _no_polling(facts: Facts, block: BlockFacts) -> Optional[Finding]:
    if block.poll_queues is None:
        return _told(POLL, "not_applicable", "no NVMe driver with polled queues runs here; Linux 5.0 brought them")
    if facts.platform is not None and facts.platform.burstable:
        return _told(POLL, "refused", "a burstable type pays with credits for CPUs that poll")
    if not any(one.kind == INSTANCE_STORE for one in block.disks):
        reason = "an EBS volume answers after hundreds of microseconds: polling it only burns CPUs; for instance store"
        return _told(POLL, "refused", reason)
    return None


def _told(knob: str, status: str, reason: str) -> Finding:
    return Finding(NAME, knob, status, reason, reference=REFERENCE)
