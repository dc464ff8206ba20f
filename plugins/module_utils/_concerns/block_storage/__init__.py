# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""block_storage: the queues of EBS volumes, instance store and other disks. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Mapping

from ..._facts.block import BlockFacts
from ..._facts.disk import INSTANCE_STORE, KINDS
from ..._facts.facts import Facts
from ..._plan import Plan, Wanted
from ..._planning.join import joined
from ..._planning.knob import Knob, options_of
from ..._planning.native import udev_rules
from ..._planning.options import METHOD, PERSIST
from ..._planning.skeleton import tuning, unobserved
from . import driver, queue
from .choice import NAME, OF_NAMED, OF_QUEUE, DiskSettings, disk_settings
from .rules import rules

_TRIM = Knob(NAME, "trim", reference="EC2 User Guide, SSD instance store")


def _look_at_trim(block: BlockFacts) -> Plan:
    """A finding about instance store with a file system: the User Guide names no other disks that take TRIM."""
    used = {name for names in block.mounts.values() for name in names}
    disks = [disk for disk in block.disks if disk.kind == INSTANCE_STORE and disk.discards and disk.name in used]
    if not disks:
        return Plan()
    without = [disk.name for disk in disks if disk.name not in block.discarding]
    if block.trim_timer or not without:
        how = "fstrim.timer tells it once a week" if block.trim_timer else "its file system tells it at once (discard)"
        return _TRIM.says("ok", f"the kernel tells instance store which blocks are free: {how}")
    reason = (
        f"nobody tells {', '.join(without[:4])} which blocks are free, so the SSD moves data that nobody needs any"
        " more: run `systemctl enable --now fstrim.timer`"
    )
    return _TRIM.says("advice", reason)


KNOBS = (*OF_QUEUE, *OF_NAMED, *driver.KNOBS, _TRIM)
_PER_DISK = options_of(OF_QUEUE)
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    **_PER_DISK,
    "disks": {
        "type": "list",
        "elements": "dict",
        "options": {
            "kind": {"type": "str", "choices": list(KINDS)},
            "device": {"type": "str"},
            "mount": {"type": "str"},
            **_PER_DISK,
            **options_of(OF_NAMED),
        },
    },
    **options_of(driver.KNOBS),
    "method": METHOD,
    "persist": PERSIST,
}


def _decide(facts: Facts, wanted: Wanted) -> Plan:
    """The plan for every disk's queue and for the driver, and the rules that set up new disks.

    Raises NearmetalError for a disk that this host doesn't have, and for a value that a disk can't take.
    """
    block = facts.block
    if block is None or not block.disks:
        return unobserved(KNOBS, OPTIONS, wanted, "this host shows no disk")
    chosen = disk_settings(block, wanted)
    at_boot = driver.plan_timeout(facts, block, chosen, wanted)
    chosen = _limit_to_method(chosen, wanted)
    for_rules = _for_rules(facts, block, chosen)
    return joined(
        queue.plan(facts, block, chosen),
        at_boot,
        driver.plan_polling(facts, block, wanted),
        driver.plan_segments(facts, block, wanted),
        Plan(replan=for_rules.derived, at_boot=dict.fromkeys(rules(for_rules), "")),
        _look_at_trim(block),
    )


def _limit_to_method(chosen: DiskSettings, wanted: Wanted) -> DiskSettings:
    """With method: boot only the driver's argument sets the timeout."""
    if wanted.get("method") != "boot":
        return chosen
    return chosen._replace(kinds=_without_timeout(chosen.kinds), disks=_without_timeout(chosen.disks))


def _for_rules(facts: Facts, block: BlockFacts, chosen: DiskSettings) -> DiskSettings:
    """What udev rules may set: not the read-ahead of a kind with a disk that has more, which the unit plans."""
    requested = {disk: chosen.disks[disk.name].get("read_ahead_kb") for disk in block.disks}
    kinds_with_more = {
        disk.kind
        for disk, text in requested.items()
        if text and queue.has_more(facts, block, disk, text, chosen.wanted[disk.name])
    }
    if not kinds_with_more:
        return chosen
    kinds = {
        kind: {knob: value for knob, value in knobs.items() if knob != "read_ahead_kb" or kind not in kinds_with_more}
        for kind, knobs in chosen.kinds.items()
    }
    return chosen._replace(kinds=kinds, derived=True)


def _without_timeout(table: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
    return {
        name: {knob: value for knob, value in wanted.items() if knob != "io_timeout"} for name, wanted in table.items()
    }


CONCERN = tuning(
    NAME,
    udev_rules,
    options=OPTIONS,
    knobs=KNOBS,
    domains=("platform", "topology", "block", "boot", "unit", "files"),
    decide=_decide,
    by_place=True,
)
