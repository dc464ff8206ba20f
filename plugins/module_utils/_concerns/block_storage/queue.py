# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""block_storage: the files of each disk's queue. Pure. PRIVATE to the collection."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.block_storage.choice import (
    NAME,
    Wishes,
    who_wants,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.block import LONGEST_MS, BlockFacts, holds, valid
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.disk import EBS, INSTANCE_STORE, XVD, Disk
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Finding, Plan, Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.bounds import LEAST, binds, bounded, kept_reason
from ansible_collections.nearmetal.ec2.plugins.module_utils._words import shown

# What AWS's own udev rules set (amazon-ec2-utils): EBS may answer late, a disk in the host that is silent is broken.
AWS, MAX = "aws", "max"
AWS_TIMEOUT_MS: Mapping[str, int] = {EBS: LONGEST_MS, INSTANCE_STORE: 90000}
_NONE = "none"
_MOST_QUEUED = 2048  # MAX_SCHED_RQ of block/blk-mq.h, with any scheduler
_SHOWN = 4  # names of disks in a sentence

_WHY: Mapping[str, Tuple[str, str]] = {
    "io_timeout": ("how long a request may take before the kernel gives it up", "ec2.md 2.11"),
    "scheduler": ("who orders requests: NVMe does it itself, one of the kernel's costs CPU", "ec2.md 2.11, S3-03"),
    "read_ahead_kb": ("how far files that are read in order are read ahead", "ec2.md 2.11"),
    "nr_requests": ("how many requests wait in the kernel", "ec2.md 2.11"),
    "nomerges": ("how hard the kernel looks for requests to merge: 2 is not at all", "ec2.md 2.11, S3-03"),
    "rq_affinity": ("which CPU ends a request: 2 is the one that began it", "ec2.md 2.11"),
}


@dataclass(frozen=True)
class Goal:
    """What a file is to read; with a status, why it isn't touched."""

    value: str = ""
    status: str = ""
    reason: str = ""


@dataclass
class _Told:
    """Findings of one knob that say the same of several disks."""

    now: Dict[str, Any] = field(default_factory=dict)
    wanted: Dict[str, str] = field(default_factory=dict)
    names: List[str] = field(default_factory=list)


def plan(facts: Facts, block: BlockFacts, wishes: Wishes, wanted: Wanted) -> Plan:
    """The plan for each knob on each disk.

    Raises NearmetalError for a value that a disk can't take.
    """
    actions: List[Action] = []
    findings: List[Finding] = []
    switched = set()
    for knob in wishes.knobs():
        told: Dict[Tuple[str, str], _Told] = {}
        for one in block.disks:
            asked = wishes.disks[one.name].get(knob)
            if asked is None:
                continue
            now = block.now(knob).get(one.place)
            goal = _goal(facts, block, one, knob, asked, wishes, wanted)
            if not goal.status:
                # With another scheduler the kernel forgets the number, so it is written although it is right now.
                due = not holds(knob, now, goal.value) or (knob == "nr_requests" and one.place in switched)
                if due:
                    actions.append(_action(one, knob, now, goal.value, wanted))
                if due and knob == "scheduler":
                    switched.add(one.place)
                goal = Goal(goal.value, "would_change" if due else "ok", goal.reason or _WHY[knob][0])
            group = told.setdefault((goal.status, goal.reason), _Told())
            group.now[one.place] = now
            group.wanted[one.place] = goal.value or asked
            group.names.append(one.name)
        findings += [_finding(knob, status, reason, group) for (status, reason), group in told.items()]
        if not told:
            reason = "no disk of this host is meant; those that are attached later get it"
            findings.append(Finding(NAME, knob, "not_applicable", reason, reference=_WHY[knob][1]))
    return Plan(tuple(actions), tuple(findings))


def timeout(kind: str, asked: str) -> Goal:
    """The io_timeout of a kind of disk, in ms.

    Raises NearmetalError for a word that is none.
    """
    if asked not in (AWS, MAX) and not (valid("io_timeout", asked) and 0 < int(asked) <= LONGEST_MS):
        raise NearmetalError(
            f"{NAME}.io_timeout is {AWS}, {MAX}, or 1 to {LONGEST_MS} milliseconds, not {shown(asked)}"
        )
    if kind == XVD:
        return Goal(status="not_applicable", reason="Xen's block front end waits for its back end without a limit")
    if asked == MAX and kind == INSTANCE_STORE:
        reason = "a disk in the host that breaks would block its readers for ever: use aws, or name milliseconds"
        return Goal(status="refused", reason=reason)
    if asked == AWS and kind not in AWS_TIMEOUT_MS:
        return Goal(status="not_applicable", reason="AWS names a time for EBS and instance store alone")
    return Goal(str(AWS_TIMEOUT_MS[kind] if asked == AWS else LONGEST_MS if asked == MAX else int(asked)))


def _goal(facts: Facts, block: BlockFacts, one: Disk, knob: str, asked: str, wishes: Wishes, wanted: Wanted) -> Goal:
    if one.zoned:
        return Goal(status="not_applicable", reason="a zoned device has rules of its own: left alone")
    goal = timeout(one.kind, asked) if knob == "io_timeout" else Goal(asked)
    if knob == "scheduler":
        goal = scheduler(one, asked)
    if knob == "read_ahead_kb":
        goal = _read_ahead(facts, block, one, asked, wanted)
    if goal.status:
        return goal
    now = block.now(knob).get(one.place)
    if now is None:
        return Goal(status="not_applicable", reason=_absent(one, knob))
    if knob in one.fixed:
        status = "ok" if holds(knob, now, goal.value) else "unchangeable"
        return Goal(goal.value, status, "the kernel shows it read-only")
    trouble = ""
    if knob == "scheduler" and goal.value not in (*one.offered, *block.loadable):
        trouble = f"doesn't offer {asked}; it offers {' '.join(one.offered) or 'none'}"
    if knob == "nr_requests":
        trouble = _too_many(block, one, int(asked), wishes)
    if trouble and who_wants(wanted, knob) != "workload":
        raise NearmetalError(f"{NAME}.{knob}: {one.name} {trouble}")
    return Goal(status="not_applicable", reason=trouble) if trouble else goal


def _read_ahead(facts: Facts, block: BlockFacts, one: Disk, asked: str, wanted: Wanted) -> Goal:
    """A workload asks for at least so much."""
    own = facts.own("block.read_ahead_kb", one.place, block.now("read_ahead_kb").get(one.place))
    goal = bounded(LEAST, asked, str(own)) if binds(wanted, "read_ahead_kb") else asked
    if goal == asked:
        return Goal(asked)
    return Goal(goal, reason=kept_reason(LEAST, asked, str(own), goal, _WHY["read_ahead_kb"][0]))


def has_more(facts: Facts, block: BlockFacts, one: Disk, asked: str, wanted: Wanted) -> bool:
    """Whether a disk reads further ahead than a workload asks for, so that no rule may set the workload's value."""
    return bool(_read_ahead(facts, block, one, asked, wanted).reason)


def scheduler(one: Disk, asked: str) -> Goal:
    """The name that this disk has for the scheduler; before Linux 5.0 `none` may be called noop."""
    if asked == _NONE and _NONE not in one.offered and "noop" in one.offered:
        return Goal("noop")
    return Goal(asked)


def _too_many(block: BlockFacts, one: Disk, asked: int, wishes: Wishes) -> str:
    chosen = wishes.disks[one.name].get("scheduler")
    name = scheduler(one, chosen).value if chosen is not None else block.scheduler.get(one.place)
    most: Optional[int] = one.depth if name == _NONE else max(_MOST_QUEUED, one.depth or 0)
    if most is None or asked <= most:
        return ""
    how = "without a scheduler, the depth of its hardware queue" if name == _NONE else f"with {name}"
    return f"takes at most {most} {how}, not {asked}"


def _absent(one: Disk, knob: str) -> str:
    if knob == "io_timeout" and one.kind in (EBS, INSTANCE_STORE):
        return (
            "this kernel has no queue/io_timeout, which came with Linux 5.0; method: boot asks for the driver's"
            " argument, which counts for all NVMe disks"
        )
    return f"the kernel has no queue/{knob} for {one.driver or one.name}"


def _action(one: Disk, knob: str, now: Optional[str], goal: str, wanted: Wanted) -> Action:
    reason, reference = _WHY[knob]
    return Action(
        concern=NAME,
        knob=knob,
        what=f"block.{knob}",
        where=one.place,
        before=now,
        after=goal,
        wanted_by=who_wants(wanted, knob),
        reason=f"{one.name}: {reason}",
        reference=reference,
    )


def _finding(knob: str, status: str, reason: str, group: _Told) -> Finding:
    """One finding for all disks of which the same is to be said, by place; their names in its sentence."""
    rest = len(group.names) - _SHOWN
    names = ", ".join(group.names[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")
    return Finding(
        concern=NAME,
        knob=knob,
        status=status,
        reason=f"{names}: {reason}",
        now=group.now,
        wanted=group.wanted,
        reference=_WHY[knob][1],
    )
