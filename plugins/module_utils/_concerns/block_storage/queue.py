# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""block_storage: the files of each disk's queue. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Tuple

from ..._error import NearmetalError
from ..._facts.block import LONGEST_MS, BlockFacts, holds, most_requests, valid
from ..._facts.disk import EBS, INSTANCE_STORE, XVD, Disk
from ..._facts.facts import Facts
from ..._measured import gain_of
from ..._plan import Action, Finding, Plan, Wanted
from ..._planning.bounds import widen
from ..._planning.knob import Knob
from ..._words import shown
from .choice import NAME, READ_AHEAD, DiskSettings

# What AWS's own udev rules set (amazon-ec2-utils): an EBS volume may answer late, a silent disk in the host is broken.
AWS, MAX = "aws", "max"
AWS_TIMEOUT_MS: Mapping[str, int] = {EBS: LONGEST_MS, INSTANCE_STORE: 90000}
_NONE = "none"
_SHOWN = 4  # names of disks in a sentence


class Goal(NamedTuple):
    """The value that a file should have; with a status, why the file is left alone."""

    value: str = ""
    status: str = ""
    reason: str = ""


class _Group(NamedTuple):
    """Disks that share one finding."""

    now: Dict[str, Any]
    wanted: Dict[str, str]
    names: List[str]


def plan(facts: Facts, disk_settings: DiskSettings) -> Plan:
    """The plan for each knob on each disk.

    Raises NearmetalError for a value that a disk can't take.
    """
    block = facts.block
    actions: List[Action] = []
    findings: List[Finding] = []
    switched = set()
    for knob in disk_settings.knobs():
        groups: Dict[Tuple[str, str], _Group] = {}
        for disk in block.disks:
            requested, wanted = disk_settings.disks[disk.name].get(knob.name), disk_settings.wanted[disk.name]
            if requested is None:
                continue
            now = block.table(knob.name).get(disk.place)
            goal = _goal(facts, disk, knob, requested, disk_settings, wanted)
            if not goal.status:
                # Another scheduler resets the number, so it is written even if it is right now.
                reset = knob.name == "nr_requests" and disk.place in switched
                to_write = reset or not holds(knob.name, now, goal.value)
                if to_write:
                    knob_of_disk = knob.at(disk.place, disk.name)
                    actions.append(knob_of_disk.action(knob.wanted_by(wanted), now, goal.value, knob.reason))
                if to_write and knob.name == "scheduler":
                    switched.add(disk.place)
                goal = Goal(goal.value, "would_change" if to_write else "ok", goal.reason or knob.reason)
            group = groups.setdefault((goal.status, goal.reason), _Group({}, {}, []))
            group.now[disk.place] = now
            group.wanted[disk.place] = goal.value or requested
            group.names.append(disk.name)
        findings += [_finding(knob, status, reason, group) for (status, reason), group in groups.items()]
        if not groups:
            reason = "no disk of this host matches; matching disks that are attached later get it"
            findings.append(knob.finding("not_applicable", reason))
    return Plan(tuple(actions), tuple(findings))


def timeout(kind: str, requested: str) -> Goal:
    """The io_timeout of a kind of disk, in ms.

    Raises NearmetalError for an unknown word.
    """
    if requested not in (AWS, MAX) and not (valid("io_timeout", requested) and 0 < int(requested) <= LONGEST_MS):
        raise NearmetalError(
            f"{NAME}.io_timeout must be {AWS}, {MAX}, or 1 to {LONGEST_MS} milliseconds, not {shown(requested)}"
        )
    if kind == XVD:
        return Goal(status="not_applicable", reason="Xen's block front end waits for its back end without a limit")
    if requested == MAX and kind == INSTANCE_STORE:
        reason = "an instance store disk that breaks would block its readers forever: use aws, or give milliseconds"
        return Goal(status="refused", reason=reason)
    if requested == AWS and kind not in AWS_TIMEOUT_MS:
        return Goal(status="not_applicable", reason="AWS gives a timeout for EBS and instance store only")
    return Goal(str(AWS_TIMEOUT_MS[kind] if requested == AWS else LONGEST_MS if requested == MAX else int(requested)))


def _goal(facts: Facts, disk: Disk, knob: Knob, requested: str, disk_settings: DiskSettings, wanted: Wanted) -> Goal:
    block = facts.block
    if disk.zoned:
        return Goal(status="not_applicable", reason="a zoned device has rules of its own, so it is left alone")
    goal = timeout(disk.kind, requested) if knob.name == "io_timeout" else Goal(requested)
    if knob.name == "scheduler":
        goal = scheduler_name(disk, requested)
    if knob == READ_AHEAD:
        goal = _read_ahead(facts, disk, requested, wanted)
    if goal.status:
        return goal
    now = block.table(knob.name).get(disk.place)
    if now is None:
        return Goal(status="not_applicable", reason=_missing_file(disk, knob.name))
    if knob.name in disk.fixed:
        status = "ok" if holds(knob.name, now, goal.value) else "unchangeable"
        return Goal(goal.value, status, "this kernel makes the setting read-only")
    obstacle = ""
    if knob.name == "scheduler" and goal.value not in (*disk.offered, *block.loadable):
        obstacle = f"doesn't offer {requested}; it offers {' '.join(disk.offered) or 'none'}"
    if knob.name == "nr_requests":
        obstacle = _depth_obstacle(block, disk, int(requested), disk_settings)
    if knob.name == "max_sectors_kb" and disk.largest is not None and int(requested) > disk.largest:
        obstacle = f"takes requests of at most {disk.largest} KiB, not {requested}"
    if not obstacle:
        return goal
    (impossible,) = knob.impossible(wanted, f"{NAME}.{knob.name}: {disk.name} {obstacle}").findings
    return Goal(status=impossible.status, reason=obstacle)


def _read_ahead(facts: Facts, disk: Disk, requested: str, wanted: Wanted) -> Goal:
    """The read-ahead in KiB; a workload's value only raises it."""
    previous = facts.host_value(READ_AHEAD.lever, disk.place, facts.block.read_ahead_kb.get(disk.place))
    goal, reason = widen(READ_AHEAD, wanted, requested, str(previous), READ_AHEAD.reason)
    return Goal(goal, reason="" if goal == requested else reason)


def has_more(facts: Facts, disk: Disk, requested: str, wanted: Wanted) -> bool:
    """Whether a disk reads further ahead than a workload asks for, so that no rule may set the workload's value."""
    return bool(_read_ahead(facts, disk, requested, wanted).reason)


def scheduler_name(disk: Disk, requested: str) -> Goal:
    """The name that this disk has for the scheduler; before Linux 5.0 `none` may be called noop."""
    if requested == _NONE and _NONE not in disk.offered and "noop" in disk.offered:
        return Goal("noop")
    return Goal(requested)


def _depth_obstacle(block: BlockFacts, disk: Disk, requested: int, disk_settings: DiskSettings) -> str:
    chosen = disk_settings.disks[disk.name].get("scheduler")
    name = scheduler_name(disk, chosen).value if chosen is not None else block.scheduler.get(disk.place)
    most = most_requests(name, disk.depth)
    if most is None or requested <= most:
        return ""
    how = "without a scheduler, the depth of its hardware queue" if name == _NONE else f"with {name}"
    return f"takes at most {most} {how}, not {requested}"


def _missing_file(disk: Disk, name: str) -> str:
    if name == "io_timeout" and disk.kind in (EBS, INSTANCE_STORE):
        return (
            "this kernel has no queue/io_timeout, which came with Linux 5.0; method: boot sets the"
            " driver's kernel argument instead, which applies to all NVMe disks"
        )
    return f"the kernel has no queue/{name} for {disk.driver or disk.name}"


def _finding(knob: Knob, status: str, reason: str, group: _Group) -> Finding:
    """One finding for all disks that share it, by place; its sentence names them."""
    unnamed = len(group.names) - _SHOWN
    names = ", ".join(group.names[:_SHOWN]) + (f" and {unnamed} more" if unnamed > 0 else "")
    changes = {(str(now), str(group.wanted[place])) for place, now in group.now.items()}
    gain = gain_of(f"{NAME}.{knob.name}", *changes.pop()) if status == "would_change" and len(changes) == 1 else ""
    return knob.finding(status, f"{names}: {reason}", group.now, group.wanted, gain)
