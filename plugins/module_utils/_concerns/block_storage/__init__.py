# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""block_storage: the queues of EBS volumes, instance store and other disks. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.block_storage import driver, queue
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.block_storage.choice import (
    KNOBS,
    NAME,
    Wishes,
    wishes,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.block_storage.rules import rules
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.block import BlockFacts
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.disk import KINDS
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Finding, Plan, Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.bounds import LEAST
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.concern import Concern
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.gate import closed
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.join import joined
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.native import by_unit, plan_file, udev_rules

_PER_DISK: Mapping[str, Mapping[str, Any]] = {
    "io_timeout": {"type": "str"},
    "scheduler": {"type": "str"},
    "read_ahead_kb": {"type": "int", "range": (0, 1 << 20)},
    "nr_requests": {"type": "int", "range": (0, 1 << 16)},
    "nomerges": {"type": "int", "choices": [0, 1, 2]},
    "rq_affinity": {"type": "int", "choices": [0, 1, 2]},
}

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
        },
    },
    "poll_queues": {"type": "int", "range": (0, 8192)},
    "method": {"type": "str", "choices": ["runtime", "boot", "both"], "default": "runtime"},
    "persist": {"type": "bool", "default": True},
}


def plan(facts: Facts, wanted: Wanted) -> Plan:
    """The plan for every disk's queue, for the rules that give new disks theirs, and for the driver.

    Raises NearmetalError for a disk that this host doesn't have, and for a value that a disk can't take.
    """
    asked = [knob for knob in (*KNOBS, "disks", driver.POLL) if wanted.get(knob) is not None]
    shut = tuple(finding for knob in asked for finding in closed(NAME, knob, facts, wanted))
    if not asked or shut:
        return joined(Plan(findings=shut), _rules(facts, None, "user"))
    block = facts.block
    if block is None or not block.disks:
        unknown = tuple(Finding(NAME, knob, "unknown", "this host shows no disk", reference="S0-40") for knob in asked)
        return joined(Plan(findings=unknown), _rules(facts, None, "user"))
    wish = wishes(block, wanted)
    at_boot = driver.plan_timeout(facts, block, wish, wanted)
    wish = _of_method(wish, wanted)
    now = queue.plan(facts, block, wish, wanted)
    polled = driver.plan_polling(facts, block, wanted)
    by = "user" if any(wanted.wanted_by(knob) == "user" for knob in asked) else "workload"
    ruled = _ruled(facts, block, wish, wanted)
    files = _rules(facts, rules(ruled) if wanted.get("persist") else None, by)
    lasting = by_unit(NAME, facts) if ruled.derived and wanted.get("persist") else Plan()
    return joined(now, at_boot, polled, files, lasting)


def _of_method(wish: Wishes, wanted: Wanted) -> Wishes:
    """With method: boot the timeout is the driver's alone."""
    if wanted.get(driver.METHOD) != "boot":
        return wish
    return Wishes(_without_timeout(wish.kinds), _without_timeout(wish.disks), wish.derived)


def _ruled(facts: Facts, block: BlockFacts, wish: Wishes, wanted: Wanted) -> Wishes:
    """What a rule may set: not the read-ahead of a kind with a disk that has more; the unit plans that at each boot."""
    asked = {one: wish.disks[one.name].get("read_ahead_kb") for one in block.disks}
    more = {one.kind for one, value in asked.items() if value and queue.has_more(facts, block, one, value, wanted)}
    if not more:
        return wish
    kinds = {
        kind: {knob: value for knob, value in knobs.items() if knob != "read_ahead_kb" or kind not in more}
        for kind, knobs in wish.kinds.items()
    }
    return Wishes(kinds, wish.disks, derived=True)


def _without_timeout(table: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
    return {
        name: {knob: value for knob, value in wanted.items() if knob != "io_timeout"} for name, wanted in table.items()
    }


def _rules(facts: Facts, rule_file: Optional[Tuple[str, str]], by: str) -> Plan:
    path, text = rule_file or (udev_rules(NAME, ())[0], None)
    return plan_file(NAME, facts, path, text, by)


CONCERN = Concern(
    name=NAME,
    options=OPTIONS,
    domains=("platform", "topology", "block", "boot", "unit", "files"),
    plan=plan,
    by_place=True,
    bounds={"read_ahead_kb": LEAST},
)
