# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""block_storage: whether the kernel tells the host's SSDs which blocks are free. It changes nothing. Pure. PRIVATE."""

from __future__ import annotations

from ..._facts.block import BlockFacts
from ..._facts.disk import INSTANCE_STORE
from ..._plan import Plan
from ..._planning.knob import Knob
from .choice import NAME

KNOB = Knob(NAME, "trim", reference="EC2 User Guide, SSD instance store")


def look(block: BlockFacts) -> Plan:
    """A finding about instance store with a file system: the User Guide names no other disks that take TRIM."""
    used = {name for names in block.mounts.values() for name in names}
    disks = [disk for disk in block.disks if disk.kind == INSTANCE_STORE and disk.discards and disk.name in used]
    if not disks:
        return Plan()
    without = [disk.name for disk in disks if disk.name not in block.discarding]
    if block.trim_timer or not without:
        how = "fstrim.timer tells it once a week" if block.trim_timer else "its file system tells it at once (discard)"
        return KNOB.says("ok", f"the kernel tells instance store which blocks are free: {how}")
    reason = (
        f"nobody tells {', '.join(without[:4])} which blocks are free, so the SSD moves data that nobody needs any"
        " more: run `systemctl enable --now fstrim.timer`"
    )
    return KNOB.says("advice", reason)
