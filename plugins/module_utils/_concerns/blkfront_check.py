# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""blkfront_check: how Xen's block front end shares memory with its back end. Pure. PRIVATE to the collection.

It changes nothing. Both ends agree on persistent grants when the disk is attached; on
EC2 the back end is Amazon's, so disabled grants are advice and no error.
"""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple

from .._facts.blkfront import BlkfrontFacts
from .._facts.facts import Facts
from .._plan import Plan, Wanted, joined
from .._planning.knob import Knob
from .._planning.skeleton import checking

NAME = "blkfront_check"
_GRANTS = Knob(NAME, "persistent_grants", reference="AWS, 2017")
_INDIRECT = Knob(NAME, "indirect_descriptors", reference="Linux kernel, xen-blkfront")
_KERNEL = Knob(NAME, "kernel", reference="AWS, 2017")
_SEGMENTS = Knob(
    NAME, "max_indirect_segments", reference="EC2 User Guide, EBS volume performance; Linux kernel, xen-blkfront"
)
_QUEUES = Knob(NAME, "max_queues", reference="Linux kernel, xen-blkfront")

# AWS asks for 256 segments of 4 KiB on st1 and sc1, so that one request carries 1 MiB (docs/ec2.md#xen-disks).
_SEGMENTS_OF_HDD = 256
_JOURNAL = "`journalctl -k -b` as root may still have the line"


def _look(facts: Facts, _wanted: Wanted) -> Plan:
    """Findings only: there is nothing to set on a running host."""
    disks = facts.blkfront
    if not disks.disks:
        reason = "no disk of this host uses Xen's block front end; only Xen instances have it"
        return _GRANTS.says("not_applicable", reason)
    version = facts.platform.kernel_version
    return joined(_kernel(version), _grants(disks, version), _indirect(disks), _segments(disks), _queues(disks))


_BLANK = "the kernel log doesn't say whether grants persist; AWS's talk of 2017 takes that as not enabled"


def _kernel(version: Optional[Tuple[int, int, int]]) -> Plan:
    if version is None or version >= (3, 10, 0):
        return Plan()
    reason = (
        "AWS's talk of 2017 recommends Linux 3.10 or newer on Xen; Amazon Linux 2013.09, Ubuntu 14.04"
        " and RHEL or CentOS 7 were the first to ship it"
    )
    return _KERNEL.says("advice", reason, ".".join(map(str, version)))


def _grants(disks: BlkfrontFacts, version: Optional[Tuple[int, int, int]]) -> Plan:
    """One finding per answer, with the disks that have it."""
    if version is not None and version < (3, 8, 0):
        reason = (
            "before Linux 3.8 the front end grants and revokes memory for each request, and each revocation flushes the"
            " TLBs of the host; newer kernels keep a pool of grants: upgrade the kernel"
        )
        return _GRANTS.says("advice", reason, dict.fromkeys(disks.disks, "disabled"))
    if disks.agreements is None:
        reason = (
            "the kernel log can't be read; with kernel.dmesg_restrict only root may read it: set become:"
            f" true; {_JOURNAL}"
        )
        return _GRANTS.says("unknown", reason, None)
    groups: Dict[str, List[str]] = {}
    for disk in disks.disks:
        groups.setdefault(_answer(disks, disk), []).append(disk)
    reasons = {
        "enabled": ("ok", "the grants of a request stay mapped for later requests"),
        "disabled": ("advice", _why_disabled(disks)),
        "blank": ("unknown", _BLANK),
        "missing": ("unknown", _why_missing(disks)),
    }
    plans = (
        _GRANTS.says(*reasons[answer], dict.fromkeys(groups[answer], answer)) for answer in reasons if answer in groups
    )
    return joined(*plans)


def _answer(disks: BlkfrontFacts, disk: str) -> str:
    line = (disks.agreements or {}).get(disk)
    if line is None:
        return "missing"
    if line.persistent_grants is None:
        return "blank"
    return "enabled" if line.persistent_grants else "disabled"


def _why_missing(disks: BlkfrontFacts) -> str:
    if disks.log_cut:
        return f"the kernel log is longer than 8 MiB and only its beginning was read; {_JOURNAL}"
    return f"the kernel log no longer has the lines about these disks; {_JOURNAL}"


def _why_disabled(disks: BlkfrontFacts) -> str:
    if disks.parameters.get("feature_persistent") in ("N", "0"):
        return (
            "this kernel doesn't ask for persistent grants: remove xen_blkfront.feature_persistent=0 from"
            " its command line and reboot"
        )
    return (
        "the back end decides, and many of EC2's Xen hosts don't offer persistent grants: nothing can"
        " be set on this host; Nitro types need no grants"
    )


def _indirect(disks: BlkfrontFacts) -> Plan:
    lines = [line for disk, line in (disks.agreements or {}).items() if disk in disks.disks]
    disabled = {line.disk: "disabled" for line in lines if line.indirect_descriptors is False}
    enabled = {line.disk: "enabled" for line in lines if line.indirect_descriptors}
    plans = []
    if enabled:
        plans.append(_INDIRECT.says("ok", "a request may be larger than 44 KiB", enabled))
    if disabled:
        reason = (
            "without indirect descriptors a request carries at most 11 pages (44 KiB), so large"
            " sequential requests are split; the back end decides"
        )
        plans.append(_INDIRECT.says("advice", reason, disabled))
    return joined(*plans)


def _segments(disks: BlkfrontFacts) -> Plan:
    name = _SEGMENTS.name if _SEGMENTS.name in disks.parameters else "max"
    value = disks.parameters.get(name, "")
    if not (value.isascii() and value.isdigit()):
        return Plan()
    if len(value) > 9 or int(value) >= _SEGMENTS_OF_HDD:
        reason = "large enough for st1 and sc1; the back end may accept less"
        return _SEGMENTS.says("ok", reason, value)
    reason = (
        f"requests carry at most {int(value) * 4} KiB, which is right for gp and io volumes; if this host has st1 or"
        f" sc1, set indirect_segments of block_storage to {_SEGMENTS_OF_HDD} (xen_blkfront.{name}={_SEGMENTS_OF_HDD})"
        " for requests of 1 MiB"
    )
    return _SEGMENTS.says("advice", reason, value)


def _queues(disks: BlkfrontFacts) -> Plan:
    if disks.refused_queues is None:
        return Plan()
    requested, taken = disks.refused_queues
    reason = f"max_queues={requested} exceeds the number of CPUs; the driver uses {taken}: nothing to do"
    return _QUEUES.says("advice", reason, str(taken))


CONCERN = checking(
    NAME,
    options={},
    knobs=(_GRANTS, _INDIRECT, _KERNEL, _SEGMENTS, _QUEUES),
    domains=("platform", "blkfront"),
    look=_look,
)
