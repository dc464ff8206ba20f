# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""block_storage: what is wanted of each disk. Pure. PRIVATE to the collection.

An option applies to every disk. In `disks` an entry for a kind overrides it, and an entry
for a device or a mount point overrides both. What is wanted of a kind also applies to
disks that are attached later.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, NamedTuple, Tuple

from ..._error import NearmetalError
from ..._facts.block import LEAST_REQUESTS, BlockFacts, valid
from ..._facts.disk import DISK, HEAD, KINDS, PATH, STACKED, Disk
from ..._plan import Wanted
from ..._planning.bounds import LEAST
from ..._planning.knob import Knob, Spec
from ..._planning.options import Claims
from ..._words import shown

NAME = "block_storage"


def _queue_knob(
    name: str, reason: str, spec: Spec, reference: str = "Linux kernel, sysfs-block; unmeasured", **more: Any
) -> Knob:
    """A file of a disk's queue."""
    kept: Mapping[str, Any] = {"within": "disks", "reason": reason, "comparable": True, **more}
    return Knob(NAME, name, f"block.{name}", reference, spec, **kept)


READ_AHEAD = _queue_knob(
    "read_ahead_kb",
    "how far the kernel reads ahead in files that are read in order",
    {"type": "int", "range": (0, 1 << 20)},
    "EC2 User Guide, EBS volume performance",
    tuned=("disk.readahead",),
    bound=LEAST,
    takes_effect="open",
)
# In the order in which they are written.
OF_QUEUE = (
    _queue_knob(
        "io_timeout",
        "how long a request may take before the kernel gives up on it",
        {"type": "str"},
        "amazon-ec2-utils",
        takes_effect="limit",
    ),
    _queue_knob(
        "scheduler",
        "which scheduler orders requests: NVMe orders them itself, and a scheduler costs CPU",
        {"type": "str"},
        "Linux kernel, sysfs-block; SAP note 1656250",
        takes_effect="at_once",
        tuned=("disk.elevator",),
    ),
    READ_AHEAD,
    _queue_knob(
        "nr_requests",
        "how many requests may wait in the kernel",
        {"type": "int", "range": (LEAST_REQUESTS, 1 << 16)},
        takes_effect="limit",
    ),
    _queue_knob(
        "nomerges",
        "how thoroughly the kernel looks for requests to merge: 2 means not at all",
        {"type": "int", "choices": [0, 1, 2]},
        "Linux kernel, sysfs-block",
        takes_effect="at_once",
    ),
    _queue_knob(
        "rq_affinity",
        "which CPU completes a request: 2 means the one that submitted it",
        {"type": "int", "choices": [0, 1, 2]},
        takes_effect="at_once",
    ),
    _queue_knob(
        "max_sectors_kb", "how large a request may be", {"type": "int", "range": (4, 1 << 20)}, takes_effect="at_once"
    ),
)
# Only for disks that the user names: a kind may have disks that lose what their cache holds.
OF_NAMED = (
    _queue_knob(
        "write_cache",
        "with write through the kernel never tells the disk to write its cache out, so what a cache without a battery"
        " holds is lost when the power fails",
        {"type": "str", "choices": ["write_back", "write_through"]},
        takes_effect="at_once",
    ),
)
_ALL = (*OF_QUEUE, *OF_NAMED)
SELECTORS = ("kind", "device", "mount")


class DiskSettings(NamedTuple):
    """Knob → value, per kind and per disk (by name), and per disk the options with who wants them.

    `derived`: disks whose wishes no udev rule can express.
    """

    kinds: Mapping[str, Mapping[str, Any]]
    disks: Mapping[str, Mapping[str, Any]]
    wanted: Mapping[str, Wanted]
    derived: bool

    def knobs(self) -> Tuple[Knob, ...]:
        """The knobs that are wanted somewhere, in the order in which they are written."""
        wanted = {name for disk_settings in (*self.kinds.values(), *self.disks.values()) for name in disk_settings}
        return tuple(knob for knob in _ALL if knob.name in wanted)


def disk_settings(block: BlockFacts, wanted: Wanted) -> DiskSettings:
    """What is wanted of each kind and each disk.

    Raises NearmetalError for an entry that names no disk of this host, for two entries that differ about one disk, and
    for a value that no kernel takes.
    """
    common = _texts("", wanted.options)
    of_kind: Dict[str, Dict[str, Any]] = {}
    of_disk: Dict[str, Dict[str, Any]] = {}
    claims = Claims()
    for position, entry in enumerate(wanted.get("disks") or ()):
        where = f"disks[{position}]"
        given = [name for name in SELECTORS if entry.get(name) is not None]
        if len(given) != 1:
            raise NearmetalError(
                f"{NAME}.{where}: give exactly one of kind, device and mount, not {' and '.join(given) or 'none'}"
            )
        texts = _texts(f"{where}.", entry)
        claims.claim(f"{NAME}.{where}", entry[given[0]], {} if wanted.stored else {"options": where})
        if given == ["kind"]:
            named = [knob.name for knob in OF_NAMED if knob.name in texts]
            if named:
                raise NearmetalError(f"{NAME}.{where}: {named[0]} is set for a device or a mount point only")
            of_kind.setdefault(entry["kind"], {}).update(texts)
            continue
        for name in _selected(block, where, given[0], entry[given[0]]):
            claims.claim(f"{NAME}.{where}", name, {} if wanted.stored else texts)
            of_disk.setdefault(name, {}).update(texts)
    kinds = {kind: {**common, **of_kind.get(kind, {})} for kind in KINDS}
    settings: Dict[str, Dict[str, Any]] = {}
    for disk in block.disks:
        texts = {**(kinds[disk.kind] if disk.layer != STACKED else {}), **of_disk.get(disk.name, {})}
        settings[disk.name] = {name: text for name, text in texts.items() if _belongs(disk, name)}
    by_disk = {
        disk.name: wanted.for_entry("disks", {**of_kind.get(disk.kind, {}), **of_disk.get(disk.name, {})})
        for disk in block.disks
    }
    hidden = any(disk.layer == PATH and settings[disk.name] for disk in block.disks)
    return DiskSettings(kinds, settings, by_disk, hidden or any(of_disk.values()))


def _belongs(disk: Disk, name: str) -> bool:
    """Whether the knob means something at this layer: read-ahead where files are read, the others where disks are."""
    return disk.layer in ((DISK, HEAD, STACKED) if name == READ_AHEAD.name else (DISK, PATH))


def _texts(where: str, options: Mapping[str, Any]) -> Dict[str, str]:
    """The knobs of an entry, as the kernel's texts."""
    texts: Dict[str, str] = {}
    for knob in _ALL:
        value = knob.value(options)
        if value is None:
            continue
        if knob.name == "scheduler" and not valid(knob.name, value):
            # It becomes text of a udev rule, which may start programs.
            raise NearmetalError(
                f"{NAME}.{where}scheduler must be the name of a scheduler, such as none, not {shown(value)}"
            )
        texts[knob.name] = str(value).replace("_", " ") if knob in OF_NAMED else str(value)
    return texts


def _selected(block: BlockFacts, where: str, how: str, selector: str) -> Tuple[str, ...]:
    """Names of the disks that an entry selects, and of all disks below them."""
    if how == "mount":
        point = selector.rstrip("/") or "/"
        if point not in block.mounts:
            present = ", ".join(sorted(block.mounts)) or "no file system on a block device"
            raise NearmetalError(
                f"{NAME}.{where}.mount: no block device is mounted at {selector}; this host has {present}"
            )
        return block.mounts[point]
    name = block.aliases.get(selector if selector.startswith("/") else f"/dev/{selector}")
    if name is None:
        present = ", ".join(disk.name for disk in block.disks) or "none"
        raise NearmetalError(f"{NAME}.{where}.device: this host has no disk {shown(selector)}; it has {present}")
    return block.below(name)
