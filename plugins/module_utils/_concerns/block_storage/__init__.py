# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""block_storage: the queues of EBS volumes, instance store and other disks. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Tuple

from ..._facts.block import BlockFacts
from ..._facts.disk import EBS, INSTANCE_STORE, KINDS, MODELS, OTHER, VIRTIO, XVD
from ..._facts.facts import Facts
from ..._plan import Plan, Wanted, joined
from ..._planning.knob import Knob, options_of
from ..._planning.native import udev_rules
from ..._planning.options import METHOD, PERSIST
from ..._planning.skeleton import tuning, unobserved
from . import driver, queue
from .choice import NAME, OF_NAMED, OF_QUEUE, DiskSettings, disk_settings
from .queue import timeout

_TRIM = Knob(NAME, "trim", reference="EC2 User Guide, SSD instance store")
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
}
_END = "nearmetal_block_storage_end"
# Only when a disk appears: `change` comes after each write by somebody, and would undo what was set since.
_HEAD = (
    f'ACTION!="add", GOTO="{_END}"',
    f'SUBSYSTEM!="block", GOTO="{_END}"',
    f'ENV{{DEVTYPE}}!="disk", GOTO="{_END}"',
    f'TEST!="device", GOTO="{_END}"',
)
# A name with a dot in front stays within udev.
_KIND = "ENV{.NEARMETAL_KIND}"
_MATCH: Mapping[str, Tuple[str, ...]] = {
    **{kind: (f'ATTRS{{model}}=="{model}", ',) for model, kind in MODELS.items()},
    XVD: ('DRIVERS=="vbd", ',),
    VIRTIO: ('DRIVERS=="virtio_blk", ',),
    OTHER: ("",),
}


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


def _decide(facts: Facts, wanted: Wanted) -> Plan:
    """The plan for every disk's queue and for the driver, and the rules that set up new disks.

    Raises NearmetalError for a disk that this host doesn't have, and for a value that a disk can't take.
    """
    block = facts.block
    if not block.disks:
        return unobserved(KNOBS, OPTIONS, wanted, "this host shows no disk")
    chosen = disk_settings(block, wanted)
    at_boot = driver.plan_timeout(facts, chosen, wanted)
    if wanted.get("method") == "boot":  # only the driver's argument sets the timeout
        kinds, disks = (_without("io_timeout", table) for table in (chosen.kinds, chosen.disks))
        chosen = chosen._replace(kinds=kinds, disks=disks)
    for_rules = _for_rules(facts, chosen)
    return joined(
        queue.plan(facts, chosen),
        at_boot,
        driver.plan(facts, wanted),
        Plan(replan=for_rules.derived, at_boot=dict.fromkeys(_rules(for_rules), "")),
        _look_at_trim(block),
    )


def _for_rules(facts: Facts, chosen: DiskSettings) -> DiskSettings:
    """What udev rules may set: not the read-ahead of a kind with a disk that has more, which the unit plans."""
    requested = {disk: chosen.disks[disk.name].get("read_ahead_kb") for disk in facts.block.disks}
    kinds_with_more = {
        disk.kind
        for disk, text in requested.items()
        if text and queue.has_more(facts, disk, text, chosen.wanted[disk.name])
    }
    if not kinds_with_more:
        return chosen
    without = _without("read_ahead_kb", {kind: chosen.kinds[kind] for kind in chosen.kinds if kind in kinds_with_more})
    return chosen._replace(kinds={**chosen.kinds, **without}, derived=True)


def _without(knob: str, table: Mapping[str, Mapping[str, Any]]) -> Dict[str, Dict[str, Any]]:
    return {name: {key: wanted[key] for key in wanted if key != knob} for name, wanted in table.items()}


CONCERN = tuning(
    NAME,
    udev_rules,
    options=OPTIONS,
    manner={"method": METHOD, "persist": PERSIST},
    knobs=KNOBS,
    domains=("platform", "topology", "block", "boot", "unit", "files"),
    decide=[_decide],
    by_place=True,
)


def _rules(disk_settings: DiskSettings) -> List[str]:
    """The rules for what is wanted of kinds of disks; none when nothing is wanted.

    Raises NearmetalError for a value that no disk takes.
    """
    settings = {kind: _settings(kind, wanted) for kind, wanted in disk_settings.kinds.items()}
    if not any(settings.values()):
        return []
    kinds = [f'{match}{_KIND}="{kind}"' for kind in (OTHER, XVD, VIRTIO, EBS, INSTANCE_STORE) for match in _MATCH[kind]]
    lines = [f'{_KIND}=="{kind}", {line}' for kind, settings_of in settings.items() for line in settings_of]
    return [*_HEAD, *kinds, *lines, f'LABEL="{_END}"']


def _settings(kind: str, wanted: Mapping[str, str]) -> List[str]:
    values: Dict[str, str] = {knob.name: wanted[knob.name] for knob in OF_QUEUE if knob.name in wanted}
    if "io_timeout" in values:
        goal = timeout(kind, values.pop("io_timeout"))
        if not goal.status:
            values = {"io_timeout": goal.value, **values}
    assignments = []
    for knob, value in values.items():
        names = (value, "noop") if (knob, value) == ("scheduler", "none") else (value,)
        for name in names:
            # udev would complain at each boot about a file that is missing.
            present = f'ATTR{{queue/scheduler}}=="*{name}*"' if len(names) > 1 else f'TEST=="queue/{knob}"'
            assignments.append(f'{present}, ATTR{{queue/{knob}}}="{name}"')
    return assignments
