# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""hugepages: who may use reserved pages: a mount, a group for shared memory. Pure. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Optional

from ..._error import NearmetalError
from ..._facts.facts import Facts
from ..._facts.hugepages import HugepageFacts
from ..._facts.hugetlbfs import PATH
from ..._facts.sysctl import HUGETLB_GROUP
from ..._plan import Plan, Wanted, joined
from ..._planning.knob import Knob
from ..._words import plain, shown
from .reserved import short, size_of

NAME = "hugepages"
REFERENCE = "AWS, 2017"
_MOUNT = Knob(
    NAME,
    "mount",
    "hugepages.mounts",
    REFERENCE,
    {"type": "dict", "options": {"path": {"type": "str", "required": True}, "size": {"type": "str"}}},
    scope="boot",
    takes_effect="boot",
    kubelet=True,
)
_GROUP = Knob(NAME, "group", "sysctl", REFERENCE, {"type": "str"}, place=HUGETLB_GROUP, takes_effect="new_memory")
KNOBS = (_MOUNT, _GROUP)

# Where a mount would hide what the system itself needs, and what a person or a program puts there later.
_SYSTEM = ("bin", "boot", "etc", "lib", "lib64", "proc", "root", "run", "sbin", "sys", "usr", "var", "dev")
_OF_OTHERS = ("home", "media", "mnt", "opt", "srv", "tmp")


def plan(facts: Facts, wanted: Wanted) -> Plan:
    """The plan for `mount` and `group`. Raises NearmetalError for a path, a size or a group that makes no sense."""
    pages = facts.hugepages
    managed = [knob for knob in KNOBS if knob.value(wanted) is not None]
    if not pages.pages:
        reason = "this kernel has no reserved huge pages"
        return joined(*(knob.at("").says("not_applicable", reason) for knob in managed))
    gid = _gid(pages, str(_GROUP.value(wanted))) if _GROUP in managed else None
    group = _group(facts, wanted, gid) if gid is not None else Plan()
    mount = _mount(facts, pages, wanted, gid) if _MOUNT in managed else Plan()
    return joined(group, mount)


def _gid(pages: HugepageFacts, name: str) -> int:
    if name.isdigit() and name.isascii() and len(name) <= 10:
        return int(name)
    if name not in pages.groups:
        raise NearmetalError(
            f"hugepages.group: /etc/group has no {plain(name)}; create it first, or give the number of a"
            " group that comes from a directory service"
        )
    return pages.groups[name]


def _group(facts: Facts, wanted: Wanted, gid: int) -> Plan:
    now, goal = facts.sysctl.get(HUGETLB_GROUP), str(gid)
    if now is None:
        return _GROUP.at("").says("not_applicable", f"this kernel has no {HUGETLB_GROUP}")
    reason = (
        f"members of {_GROUP.value(wanted)} may take reserved pages for shared memory (shmget with SHM_HUGETLB);"
        " a service that locks them needs LimitMEMLOCK= too"
    )
    return _GROUP.change(wanted, now, goal, reason)


def _mount(facts: Facts, pages: HugepageFacts, wanted: Wanted, gid: Optional[int]) -> Plan:
    path, requested = str(_MOUNT.value(wanted)["path"]), _MOUNT.value(wanted).get("size")
    if not _is_harmless(path):
        raise NearmetalError(
            "hugepages.mount.path must be a directory that nothing else uses, with a name of letters, digits and _.-,"
            f" such as /mnt/huge-1G, not {shown(path)}"
        )
    size = size_of(str(requested)) if requested is not None else pages.size
    if size is None or size not in pages.pages:
        wrong, sizes = requested or "a default size", " ".join(pages.pages)
        sentence = f"hugepages.mount.size: this kernel has no huge pages of {wrong}; it has {sizes}"
        return _MOUNT.impossible(wanted, sentence)
    if path not in pages.mounts and path in pages.mounted:
        owner = "systemd mounts" if path == "/dev/hugepages" else "somebody has mounted"
        reason = f"{owner} a {pages.mounted[path]} at {path}, which is left alone: name another path"
        return _MOUNT.says("refused", reason, pages.mounted[path], path)
    if facts.unit.systemd is None:
        reason = "this host doesn't run systemd, which would mount the pages at each boot"
        return _MOUNT.says("refused", reason, None, path)
    goal = f"pagesize={short(int(size[:-2]))}" + (f",gid={gid},mode=1770" if gid is not None else "")
    reason = f"programs that open huge pages as files find those of {size} at {path}"
    # A mount of nearmetal at another path was wanted by an earlier run.
    plans = [
        _MOUNT.at(earlier_path).change(wanted, options, None, "not wanted any more")
        for earlier_path, options in pages.mounts.items()
        if earlier_path != path
    ]
    change = _MOUNT.at(path).change(wanted, pages.mounts.get(path), goal, reason)
    actions = joined(*plans, change).actions
    finding = _MOUNT.at(path).finding("would_change" if actions else "ok", reason, pages.mounts.get(path), goal)
    return Plan(actions, (finding,))


def _is_harmless(path: str) -> bool:
    """Whether a mount there hides nothing that the system needs."""
    folders = path.split("/")[1:]
    return bool(
        re.fullmatch(PATH, path, re.ASCII)
        and not {".", ".."} & set(folders)
        and folders[0] not in ("proc", "sys", "run")
        and (len(folders) > 1 or folders[0] not in (*_SYSTEM, *_OF_OTHERS))
    )
