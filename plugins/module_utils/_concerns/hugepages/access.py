# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""hugepages: who may use reserved pages: a mount, a group for shared memory. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.hugepages.reserved import short, size_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.hugepages import HugepageFacts
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.hugetlbfs import PATH
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.sysctl import HUGETLB_GROUP
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action, Finding, Plan, Value, Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.join import joined
from ansible_collections.nearmetal.ec2.plugins.module_utils._words import plain, shown

NAME = "hugepages"
REFERENCE = "S0-32"
KNOBS = ("mount", "group")

# Where a mount would hide what the system itself needs.
_SYSTEM = ("bin", "boot", "etc", "lib", "lib64", "proc", "root", "run", "sbin", "sys", "usr", "var", "dev")


def plan(facts: Facts, wanted: Wanted) -> Tuple[Plan, Dict[str, str]]:
    """The plan for `mount` and `group`, and the kernel parameters that make it last.

    Raises NearmetalError for a path, a size or a group that can't be meant.
    """
    pages = facts.hugepages
    asked = [knob for knob in KNOBS if wanted.get(knob) is not None]
    if not asked:
        return Plan(), {}
    if pages is None or not pages.pages:
        told = [_finding(knob, "not_applicable", "this kernel has no reserved huge pages") for knob in asked]
        return Plan(findings=tuple(told)), {}
    gid = None
    plans: List[Plan] = []
    lines: Dict[str, str] = {}
    if wanted.get("group") is not None:
        gid = _gid(pages, str(wanted.get("group")))
        plans.append(_group(facts, wanted, gid, lines))
    if wanted.get("mount") is not None:
        plans.append(_mount(facts, pages, wanted, gid))
    return joined(*plans), lines


def _gid(pages: HugepageFacts, name: str) -> int:
    if name.isdigit() and name.isascii() and len(name) <= 10:
        return int(name)
    if name not in pages.groups:
        raise NearmetalError(
            f"hugepages.group: /etc/group has no {plain(name)}; make it first, or give the number of a group that comes"
            " from a directory service"
        )
    return pages.groups[name]


def _group(facts: Facts, wanted: Wanted, gid: int, lines: Dict[str, str]) -> Plan:
    now, goal = (facts.sysctl or {}).get(HUGETLB_GROUP), str(gid)
    if now is None:
        return Plan(findings=(_finding("group", "not_applicable", f"this kernel has no {HUGETLB_GROUP}"),))
    lines[HUGETLB_GROUP] = goal
    reason = (
        f"members of {wanted.get('group')} may take reserved pages for shared memory (shmget with SHM_HUGETLB);"
        " a service that locks them needs LimitMEMLOCK= too"
    )
    if now == goal:
        return Plan(findings=(_finding("group", "ok", reason, now, goal, HUGETLB_GROUP),))
    action = _action("group", "sysctl", HUGETLB_GROUP, now, goal, "runtime", wanted, reason)
    return Plan((action,), (_finding("group", "would_change", reason, now, goal, HUGETLB_GROUP),))


def _mount(facts: Facts, pages: HugepageFacts, wanted: Wanted, gid: Optional[int]) -> Plan:
    path, asked = str(wanted.get("mount")["path"]), wanted.get("mount").get("size")
    if not _may_be(path):
        raise NearmetalError(
            "hugepages.mount.path is a folder of its own, of letters, digits and _.-, such as /mnt/huge-1G,"
            f" not {shown(path)}"
        )
    size = size_of(str(asked)) if asked is not None else pages.size
    if size is None or size not in pages.pages:
        raise NearmetalError(
            f"hugepages.mount.size: this kernel has no huge pages of {asked or 'a default size'}; it has"
            f" {' '.join(pages.pages)}"
        )
    if path not in pages.mounts and path in pages.mounted:
        owner = "systemd mounts" if path == "/dev/hugepages" else "somebody has mounted"
        reason = f"{owner} a {pages.mounted[path]} at {path}: it is left alone; name another path"
        return Plan(findings=(_finding("mount", "refused", reason, pages.mounted[path], path),))
    if facts.unit is None or facts.unit.systemd is None:
        reason = "this host doesn't run systemd, which would mount it at each boot"
        return Plan(findings=(_finding("mount", "refused", reason, None, path),))
    goal = f"pagesize={short(int(size[:-2]))}" + (f",gid={gid},mode=1770" if gid is not None else "")
    reason = f"programs that open huge pages as files find those of {size} at {path}"
    # A mount of ours at another path was wanted by an earlier run.
    actions = [
        _action("mount", "hugepages.mounts", other, options, None, "boot", wanted, "not wanted any more")
        for other, options in pages.mounts.items()
        if other != path
    ]
    now = pages.mounts.get(path)
    if now != goal:
        actions.append(_action("mount", "hugepages.mounts", path, now, goal, "boot", wanted, reason))
    return Plan(tuple(actions), (_finding("mount", "would_change" if actions else "ok", reason, now, goal, path),))


def _may_be(path: str) -> bool:
    """Whether a mount there hides nothing that the system needs."""
    words = path.split("/")[1:]
    return bool(
        PATH.fullmatch(path)
        and not {".", ".."} & set(words)
        and words[0] not in ("proc", "sys", "run")
        and (len(words) > 1 or words[0] not in _SYSTEM)
    )


def _action(
    knob: str, what: str, where: str, before: Value, after: Value, scope: str, wanted: Wanted, reason: str
) -> Action:
    return Action(
        concern=NAME,
        knob=knob,
        what=what,
        where=where,
        before=before,
        after=after,
        scope=scope,
        wanted_by=wanted.wanted_by(knob),
        reason=reason,
        reference=REFERENCE,
    )


def _finding(
    knob: str, status: str, reason: str, now: Optional[str] = None, goal: Optional[str] = None, where: str = ""
) -> Finding:
    return Finding(NAME, knob, status, reason, now=now, wanted=goal, reference=REFERENCE, where=where)
