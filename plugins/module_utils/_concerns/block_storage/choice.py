# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""block_storage: what is wanted of each disk. Pure. PRIVATE to the collection.

An option counts for every disk; an entry of `disks` says it for one kind, and one for a
device or a mount point has the last word. What is wanted of a kind holds for disks that
are attached later too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Mapping, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.block import ATTRIBUTES, BlockFacts, valid
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.disk import (
    DISK,
    HEAD,
    KINDS,
    PATH,
    STACKED,
    Disk,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.options import Claims
from ansible_collections.nearmetal.ec2.plugins.module_utils._words import shown

NAME = "block_storage"
KNOBS = ATTRIBUTES
SELECTORS = ("kind", "device", "mount")


@dataclass(frozen=True)
class Wishes:
    """Knob → value, per kind and per disk (by name); `derived`: disks whose wishes no udev rule can express."""

    kinds: Mapping[str, Mapping[str, Any]]
    disks: Mapping[str, Mapping[str, Any]]
    derived: bool

    def knobs(self) -> Tuple[str, ...]:
        """The knobs that are wanted somewhere, in the order in which they are written."""
        wanted = {knob for wishes in (*self.kinds.values(), *self.disks.values()) for knob in wishes}
        return tuple(knob for knob in KNOBS if knob in wanted)


def wishes(block: BlockFacts, wanted: Wanted) -> Wishes:
    """What is wanted of each kind and each disk.

    Raises NearmetalError for an entry that names no disk of this host, for two about one disk, and for a value that no
    kernel takes.
    """
    kinds: Dict[str, Dict[str, Any]] = {kind: _asked("", wanted.options) for kind in KINDS}
    own: Dict[str, Dict[str, Any]] = {}
    claims = Claims()
    for position, entry in enumerate(wanted.get("disks") or ()):
        where = f"disks[{position}]"
        given = [name for name in SELECTORS if entry.get(name) is not None]
        if len(given) != 1:
            raise NearmetalError(f"{NAME}.{where} names one of kind, device and mount, not {given or 'none'}")
        asked = _asked(f"{where}.", entry)
        claims.claim(f"{NAME}.{where}", entry[given[0]], {} if wanted.stored else {"options": where})
        if given == ["kind"]:
            kinds[entry["kind"]].update(asked)
            continue
        for name in _selected(block, where, given[0], entry[given[0]]):
            claims.claim(f"{NAME}.{where}", name, {} if wanted.stored else asked)
            own.setdefault(name, {}).update(asked)
    found: Dict[str, Dict[str, Any]] = {}
    for one in block.disks:
        mine = {**(kinds[one.kind] if one.layer != STACKED else {}), **own.get(one.name, {})}
        found[one.name] = {knob: value for knob, value in mine.items() if _belongs(one, knob)}
    hidden = any(one.layer == PATH and found[one.name] for one in block.disks)
    return Wishes(kinds, found, hidden or any(own.values()))


def who_wants(wanted: Wanted, knob: str) -> str:
    """Who wants a knob: `user`, `workload` or `auto`; of one that only an entry of `disks` names, who wants those."""
    return wanted.wanted_by(knob if wanted.get(knob) is not None else "disks")


def _belongs(one: Disk, knob: str) -> bool:
    """Whether the knob means something at this layer: read-ahead where files are read, the others where disks are."""
    return one.layer in ((DISK, HEAD, STACKED) if knob == "read_ahead_kb" else (DISK, PATH))


def _asked(where: str, given: Mapping[str, Any]) -> Dict[str, str]:
    """The knobs of an entry, as the kernel's texts."""
    found: Dict[str, str] = {}
    for knob in KNOBS:
        value = given.get(knob)
        if value is None:
            continue
        if knob == "scheduler" and not valid(knob, value):
            # It becomes text of a udev rule, which may start programs.
            raise NearmetalError(
                f"{NAME}.{where}scheduler is the name of a scheduler, such as none, not {shown(value)}"
            )
        found[knob] = str(value)
    return found


def _selected(block: BlockFacts, where: str, how: str, what: str) -> Tuple[str, ...]:
    """Names of the disks that an entry is about, with all that lies below them."""
    if how == "mount":
        point = what.rstrip("/") or "/"
        if point not in block.mounts:
            here = ", ".join(sorted(block.mounts)) or "no file system on a block device"
            raise NearmetalError(f"{NAME}.{where}.mount: no block device is mounted at {what}; this host has {here}")
        return block.mounts[point]
    name = block.aliases.get(what if what.startswith("/") else f"/dev/{what}")
    if name is None:
        here = ", ".join(one.name for one in block.disks) or "none"
        raise NearmetalError(f"{NAME}.{where}.device: this host has no disk {shown(what)}; it has {here}")
    return block.below(name)
