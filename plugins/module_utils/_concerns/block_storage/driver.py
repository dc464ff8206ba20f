# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""block_storage: kernel arguments that the NVMe driver and Xen's front end read when they are loaded. Pure. PRIVATE."""

from __future__ import annotations

from typing import Optional, Tuple

from ..._facts.block import LONGEST_MS, BlockFacts
from ..._facts.disk import EBS, INSTANCE_STORE, XVD
from ..._facts.facts import Facts
from ..._plan import Plan, Wanted, joined
from ..._planning.boot_argument import plan_argument
from ..._planning.knob import boot_argument
from ..._planning.skeleton import per_knob
from .choice import NAME, DiskSettings
from .queue import timeout

# A knob of its own, so that a run with another method takes the driver's timeout back.
_TIMEOUT = boot_argument(NAME, "method", "nvme_core.io_timeout", "amazon-ec2-utils", option="io_timeout")
_POLL = boot_argument(
    NAME, "poll_queues", "nvme.poll_queues", "Linux kernel, nvme; unmeasured", spec={"type": "int", "range": (0, 8192)}
)
_SEGMENTS = boot_argument(
    NAME,
    "indirect_segments",
    "xen_blkfront.max_indirect_segments",
    "EC2 User Guide, EBS volume performance; unmeasured",
    spec={"type": "int", "range": (0, 4096)},
)
KNOBS = (_TIMEOUT, _POLL, _SEGMENTS)
# nvme became nvme_core in Linux 4.6; the parameter grew from 8 to 32 bits in 4.15.
_OLD_NAME = "nvme.io_timeout"
_RENAMED, _WIDENED = (4, 6, 0), (4, 15, 0)
# The front end has the parameter since 3.10, and its name is longer since 4.6.
_SHORT_NAME, _FIRST_INDIRECT = "xen_blkfront.max", (3, 10, 0)
_MOST_OF_8_BITS = 255


def plan_timeout(facts: Facts, disk_settings: DiskSettings, wanted: Wanted) -> Plan:
    """The driver's own timeout."""
    block = facts.block
    requested = disk_settings.kinds[EBS].get("io_timeout")
    if wanted.get("method") == "runtime" or requested is None:
        return Plan()
    if not any(disk.kind == EBS for disk in block.disks):
        return _TIMEOUT.at("").says("not_applicable", "no EBS volume of this host is attached as NVMe")
    goal = timeout(EBS, requested)
    seconds = LONGEST_MS if int(goal.value) == LONGEST_MS else -(-int(goal.value) // 1000)
    version = facts.platform.kernel_version
    if _has_8_bits(block, version):
        # A larger number isn't cut off: the driver would refuse to load, and the root disk would be missing.
        seconds = min(seconds, _MOST_OF_8_BITS)
    knob = _TIMEOUT.at(_OLD_NAME) if version is not None and version < _RENAMED else _TIMEOUT
    reason = "the driver reads it when it finds a disk, before anything in user space runs"
    change = plan_argument(facts, wanted, knob, f"{knob.place}={seconds}", reason)
    store = [disk.name for disk in block.disks if disk.kind == INSTANCE_STORE]
    if store and wanted.get("method") == "boot":
        warning = (
            f"the argument applies to every NVMe disk, so to {', '.join(store)} too: method: both gives"
            " each kind its own timeout"
        )
        return joined(change, _TIMEOUT.at("").says("advice", warning))
    return change


def _has_8_bits(block: BlockFacts, version: Optional[Tuple[int, int, int]]) -> bool:
    """Whether the driver's parameter has 8 bits; a distribution may have widened it, which a larger value shows."""
    old = version is None or version < _WIDENED
    return old and (block.driver_timeout is None or block.driver_timeout <= _MOST_OF_8_BITS)


def _polling(facts: Facts, wanted: Wanted, queues: int) -> Plan:
    """Queues that are polled instead of interrupting.

    Raises NearmetalError for more queues than this host has CPUs.
    """
    knob = _POLL.at("")
    reason = "the driver sets its queues up when it is loaded"
    if not queues:
        return plan_argument(facts, wanted, _POLL, None, reason)
    refusal = _polling_refusal(facts)
    if refusal is not None:
        return refusal
    cpus = len(facts.online)
    if not 0 < queues <= cpus:
        sentence = f"{NAME}.poll_queues: {queues} queues can't be polled by {cpus} CPUs; give 0 to {cpus}"
        return knob.impossible(wanted, sentence)
    advice = (
        "only io_uring with IOPOLL and preadv2 with RWF_HIPRI use polled queues, and each thread that polls burns a CPU"
    )
    plan = joined(plan_argument(facts, wanted, _POLL, f"{_POLL.place}={queues}", reason), knob.says("advice", advice))
    if queues == 1:
        return plan
    # io_queue_count_set() of drivers/nvme/host/pci.c: -EINVAL for more than there are possible CPUs.
    warning = (
        f"before this disk starts as a type with fewer than {queues} vCPUs, set poll_queues to 0: the"
        " driver would refuse the argument, and as a module it wouldn't load at all"
    )
    return joined(plan, knob.says("advice", warning))


def _segments(facts: Facts, wanted: Wanted, segments: int) -> Plan:
    """Pages of a request to a disk of Xen's front end; 0 takes the argument back."""
    version = facts.platform.kernel_version
    knob = _SEGMENTS.at(_SHORT_NAME) if version is not None and version < _RENAMED else _SEGMENTS
    reason = "both ends agree on the pages of a request when a disk is attached: the smaller number counts"
    if not segments:
        return plan_argument(facts, wanted, knob, None, reason)
    if not any(disk.kind == XVD for disk in facts.block.disks):
        return knob.at("").says("not_applicable", "no disk of this host is attached by Xen's front end")
    if version is not None and version < _FIRST_INDIRECT:
        return knob.at("").says("not_applicable", "Xen's front end has indirect descriptors since Linux 3.10")
    return plan_argument(facts, wanted, knob, f"{knob.place}={segments}", reason)


def _polling_refusal(facts: Facts) -> Optional[Plan]:
    knob, block = _POLL.at(""), facts.block
    if block.poll_queues is None:
        reason = "no NVMe driver with polled queues is loaded; they came with Linux 5.0"
        return knob.says("not_applicable", reason)
    if facts.burstable:
        return knob.says("refused", "on a burstable type, CPUs that poll spend its credits")
    if not any(disk.kind == INSTANCE_STORE for disk in block.disks):
        reason = (
            "an EBS volume answers after hundreds of microseconds: polling it only burns CPUs; use"
            " poll_queues with instance store"
        )
        return knob.says("refused", reason)
    return None


plan = per_knob((_POLL, _polling), (_SEGMENTS, _segments))
