# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts about block devices: what each is, and the settings of its queue. PRIVATE to the collection.

Tables are keyed by the disk's place, so that an action on one disk is one entry.
"""

from __future__ import annotations

from typing import Dict, Mapping, NamedTuple, Optional, Tuple

from .._parse import block_queue
from . import boot_lines, disk
from .disk import Disk
from .host import Host

# The meaning of queue files, for planners, which import no parser.
ATTRIBUTES = block_queue.ATTRIBUTES
LEAST_REQUESTS = block_queue.LEAST_REQUESTS
LONGEST_MS = block_queue.LONGEST_MS
holds = block_queue.holds
valid = block_queue.valid

# The kernel's defaults: blk_mq_init_allocated_queue(), BLKDEV_DEFAULT_RQ, VM_READAHEAD_PAGES.
_SECONDS, _REQUESTS, _READ_AHEAD_KB = 30, 128, 128
_MOST_SCHEDULED = 2048  # MAX_SCHED_RQ of block/blk-mq.h, with any scheduler
_TRIM_TIMER = "/etc/systemd/system/timers.target.wants/fstrim.timer"
_DRIVER_TIMEOUT = ("/sys/module/nvme_core/parameters/io_timeout", "/sys/module/nvme/parameters/io_timeout")
_POLL_QUEUES = "/sys/module/nvme/parameters/poll_queues"


class BlockFacts(NamedTuple):
    """Every disk, by name, and tables by place. A disk without a queue file isn't in that file's table."""

    disks: Tuple[Disk, ...]
    mounts: Mapping[str, Tuple[str, ...]]  # mount point → names of the devices below it, at any depth
    aliases: Mapping[str, str]  # path below /dev → name of the disk
    discarding: Tuple[str, ...]  # names of disks with a file system that is mounted with discard
    trim_timer: bool  # systemd tells all disks once a week (fstrim.timer)
    loadable: Tuple[str, ...]  # schedulers that are modules of this kernel
    driver_timeout: Optional[int]  # seconds that the NVMe driver gives a request; None: no NVMe driver
    poll_queues: Optional[int]  # of the NVMe driver; None: it has no such parameter
    io_timeout: Mapping[str, str]  # ms
    scheduler: Mapping[str, str]
    read_ahead_kb: Mapping[str, str]
    nr_requests: Mapping[str, str]
    nomerges: Mapping[str, str]
    rq_affinity: Mapping[str, str]
    max_sectors_kb: Mapping[str, str]
    write_cache: Mapping[str, str]

    def table(self, attribute: str) -> Mapping[str, str]:
        """The table of that queue file: place → value."""
        values: Mapping[str, str] = getattr(self, attribute)
        return values

    def below(self, name: str) -> Tuple[str, ...]:
        """Names of the device and of all that lies below it."""
        return disk.descended({device.name: device.below for device in self.disks}, (name,))


def observe(host: Host) -> BlockFacts:
    """Read /sys/block, the mounts of this process, and the NVMe driver's parameters."""
    places = sorted(disk.names(host).items(), key=lambda item: item[1])
    disks = tuple(_disk(host, place, name) for place, name in places)
    aliases = disk.aliases(host)
    members = {device.name: device.below for device in disks}
    tables: Dict[str, Dict[str, str]] = {attribute: {} for attribute in ATTRIBUTES}
    for device in disks:
        for attribute, table in tables.items():
            value = read(host, device.name, attribute)
            if value is not None:
                table[device.place] = value
    return BlockFacts(
        disks=disks,
        mounts={point: disk.descended(members, tops) for point, tops in disk.mounted(host, aliases).items()},
        aliases=aliases,
        discarding=disk.descended(members, disk.discarding(host, aliases)),
        trim_timer=host.link(_TRIM_TIMER) is not None or host.exists(_TRIM_TIMER),
        loadable=_loadable(host),
        driver_timeout=_driver_timeout(host),
        poll_queues=host.number(_POLL_QUEUES),
        **tables,
    )


def read(host: Host, name: str, attribute: str) -> Optional[str]:
    """The value of a disk's queue file; None when the file is missing or has another form."""
    text = host.line(f"{disk.BLOCK}/{name}/queue/{attribute}")
    if attribute == "scheduler":
        return block_queue.schedulers(text)[0]
    return text if block_queue.valid(attribute, text) else None


def kernel_choice(host: Host, name: str, attribute: str) -> Optional[str]:
    """The kernel's own choice for a disk; None for a stacked device, whose driver decides, and for an unknown file."""
    if disk.layer(host, name) == disk.STACKED or read(host, name, attribute) is None:
        return None
    if attribute == "io_timeout":
        nvme = disk.kind_and_driver(host, name)[2] == "nvme" or name.startswith("nvme")
        seconds = _driver_timeout(host) if nvme else None
        return block_queue.timeout_for(seconds if seconds is not None else _SECONDS)
    if attribute == "scheduler":
        offered = block_queue.schedulers(host.line(f"{disk.BLOCK}/{name}/queue/scheduler"))[1]
        queues = len(host.names(f"{disk.BLOCK}/{name}/mq"))
        if "none" not in offered:
            return None
        return "mq-deadline" if queues == 1 and "mq-deadline" in offered else "none"
    if attribute == "nr_requests":
        return requests_of(host, name, kernel_choice(host, name, "scheduler"))
    if attribute == "read_ahead_kb":
        best = host.number(f"{disk.BLOCK}/{name}/queue/optimal_io_size") or 0
        return str(max(_READ_AHEAD_KB, 2 * best // 1024))
    # The kernel has had three limits for a request, and shows what a disk's cache is only until somebody writes.
    return {"rq_affinity": "1", "nomerges": "0"}.get(attribute)


def has_foreign_rule(host: Host, attribute: str) -> bool:
    """Whether a foreign udev rule may set this file, so that only the next boot shows its value without nearmetal."""
    paths = (path for _name, path in boot_lines.files(host, "udev/rules.d", ".rules"))
    return any(f"{{queue/{attribute}}}" in (host.text(path) or "") for path in paths)


def requests_of(host: Host, name: str, scheduler: Optional[str]) -> Optional[str]:
    """The nr_requests of a scheduler by default: a hardware queue's depth, or twice that up to 256."""
    most = depth(host, name)
    return None if most is None else str(most if scheduler == "none" else 2 * min(most, _REQUESTS))


def most_requests(scheduler: Optional[str], hardware_depth: Optional[int]) -> Optional[int]:
    """The largest nr_requests that the kernel takes; None where that isn't known."""
    return hardware_depth if scheduler == "none" else _MOST_SCHEDULED


def offered_schedulers(host: Host, name: str) -> Tuple[str, ...]:
    """The schedulers that a disk takes, with those that the kernel would load."""
    return (*block_queue.schedulers(host.line(f"{disk.BLOCK}/{name}/queue/scheduler"))[1], *_loadable(host))


def depth(host: Host, name: str) -> Optional[int]:
    """How many requests a hardware queue of the disk takes."""
    return host.number(f"{disk.BLOCK}/{name}/mq/0/nr_tags")


def _disk(host: Host, place: str, name: str) -> Disk:
    layer = disk.layer(host, name)
    kind, model, driver = disk.kind_and_driver(host, name) if layer != disk.STACKED else ("", None, None)
    folder = f"{disk.BLOCK}/{name}/queue"
    return Disk(
        name=name,
        place=place,
        layer=layer,
        kind=kind,
        model=model,
        driver=driver,
        zoned=(host.line(f"{folder}/zoned") or "none") != "none",
        offered=block_queue.schedulers(host.line(f"{folder}/scheduler"))[1],
        depth=depth(host, name),
        discards=bool(host.number(f"{folder}/discard_max_bytes")),
        largest=host.number(f"{folder}/max_hw_sectors_kb"),
        fixed=tuple(name for name in ATTRIBUTES if host.fixed(f"{folder}/{name}")),
        below=disk.below(host, name),
        node=disk.node(host, name),
    )


def _loadable(host: Host) -> Tuple[str, ...]:
    """The schedulers that the kernel loads when they are named: kyber-iosched.ko.xz is kyber, bfq.ko is bfq."""
    release = host.line("/proc/sys/kernel/osrelease") or ""
    if "/" in release or not release:
        return ()
    files = (file.partition(".ko") for file in host.names(f"/lib/modules/{release}/kernel/block"))
    modules = (module for module, dot, _rest in files if dot)
    return tuple(module[: -len("-iosched")] if module.endswith("-iosched") else module for module in modules)


def _driver_timeout(host: Host) -> Optional[int]:
    return next((seconds for path in _DRIVER_TIMEOUT for seconds in [host.number(path)] if seconds), None)
