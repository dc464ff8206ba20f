# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The block devices of a host: their kinds, and how they are stacked. PRIVATE to the collection.

A disk's place is its device ("0000:00:1f.0/n1", "vbd-51712", "virtio3"): names change
with the order in which disks are found. A disk's kind follows from its model, never from its name.
"""

from __future__ import annotations

import posixpath
import re
from typing import Dict, NamedTuple, Optional, Tuple

from .._parse import mountinfo
from .host import Host

BLOCK = "/sys/block"
PLACE = re.compile(r"[0-9a-zA-Z][0-9a-zA-Z:._-]{0,63}(?:/n[0-9]{1,4})?", re.ASCII)

EBS, INSTANCE_STORE, XVD, VIRTIO, OTHER = "ebs", "instance_store", "xvd", "virtio", "other"
KINDS = (EBS, INSTANCE_STORE, XVD, VIRTIO, OTHER)
# What EC2's controllers answer to Identify; the field is padded with blanks.
MODELS = {"Amazon Elastic Block Store": EBS, "Amazon EC2 NVMe Instance Storage": INSTANCE_STORE}
_DRIVERS = {"vbd": XVD, "virtio_blk": VIRTIO}

# disk: hardware of its own. path: one of several ways to a namespace, hidden from user space, and head: the disk that
# stands for them (nvme_core.multipath). stacked: RAID, LVM, encryption.
DISK, PATH, HEAD, STACKED = "disk", "path", "head", "stacked"

_NAME = re.compile(r"[A-Za-z0-9!._-]{1,63}", re.ASCII)
_NAMESPACE = re.compile(r"nvme([0-9]+)(?:c([0-9]+))?n([0-9]+)", re.ASCII)
_PCI = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", re.ASCII)
# Folders in which udev, LVM and mdadm keep other names.
_LINKS = ("/dev/disk/by-id", "/dev/disk/by-label", "/dev/disk/by-uuid", "/dev/mapper", "/dev/md")
_DEEPEST = 16  # layers of RAID on LVM on encryption on …


class Disk(NamedTuple):
    """One whole block device."""

    name: str
    place: str
    layer: str  # disk | path | head | stacked
    kind: str  # one of KINDS, "" for a stacked device
    model: Optional[str]
    driver: Optional[str]
    zoned: bool
    offered: Tuple[str, ...]  # schedulers
    depth: Optional[int]  # requests that a hardware queue takes
    largest: Optional[int]  # KiB of a request that the hardware takes
    discards: bool  # the kernel can tell it which blocks are free
    fixed: Tuple[str, ...]  # queue files that the kernel lets nobody write
    below: Tuple[str, ...]  # names of the devices directly below it
    node: Optional[int] = None  # the NUMA node; None: near none in particular

    @property
    def folder(self) -> str:
        """The device's directory in /sys."""
        return f"{BLOCK}/{self.name}"


def names(host: Host) -> Dict[str, str]:
    """Place → name of every block device that has hardware, a head or members below it."""
    names_by_place: Dict[str, str] = {}
    for name in host.names(BLOCK):
        if _NAME.fullmatch(name) and (host.exists(f"{BLOCK}/{name}/device") or host.names(f"{BLOCK}/{name}/slaves")):
            names_by_place.setdefault(place(host, name), name)
    return names_by_place


def name_at(host: Host, where: str) -> Optional[str]:
    """The name of the device at a place: all are looked at only if it isn't where it was."""
    name = host.disk_names.get(where)
    if name is None or not host.exists(f"{BLOCK}/{name}") or place(host, name) != where:
        host.disk_names = names(host)
    return host.disk_names.get(where)


def place(host: Host, name: str) -> str:
    """The place of a device, which is stable; for a stacked device its name."""
    device = host.target(f"{BLOCK}/{name}/device")
    namespace = _NAMESPACE.fullmatch(name)
    if namespace:
        address = host.target(f"{BLOCK}/{name}/device/device")
        return f"{address}/n{namespace[3]}" if _PCI.fullmatch(address) else name
    return device if PLACE.fullmatch(device) else name


def identities(host: Host, name: str) -> Dict[str, str]:
    """Source → what distinguishes the disk from another one at its place: its own ids, and the kernel's number for it.

    Linux 5.15 and newer have that number, and use it only once in a boot.
    """
    files = ("wwid", "device/wwid", "device/serial", "serial", "diskseq")
    texts = ((file, host.line(f"{BLOCK}/{name}/{file}") or "") for file in files)
    return {
        file: f"{file}={text}"
        for file, text in texts
        if text and text.isprintable() and text.isascii() and len(text) < 242
    }


def layer(host: Host, name: str) -> str:
    """The layer of the device: disk, path, head or stacked."""
    if not host.exists(f"{BLOCK}/{name}/device"):
        return STACKED
    namespace = _NAMESPACE.fullmatch(name)
    if namespace and namespace[2] is not None:
        return PATH
    above = host.target(f"{BLOCK}/{name}/device")
    return HEAD if namespace and above.startswith("nvme-subsys") else DISK


def kind_and_driver(host: Host, name: str) -> Tuple[str, Optional[str], Optional[str]]:
    """Kind, model and driver."""
    folder = f"{BLOCK}/{name}/device"
    model = host.line(f"{folder}/model")
    driver = host.target(f"{folder}/driver") or host.target(f"{folder}/device/driver") or None
    kind = MODELS.get(model or "") or _DRIVERS.get(driver or "") or OTHER
    return kind, model, driver


def node(host: Host, name: str) -> Optional[int]:
    """The NUMA node of the device, of the PCI device of an NVMe controller, or of the one that carries virtio."""
    folder = f"{BLOCK}/{name}/device"
    numbers = (host.number(f"{folder}/{path}numa_node") for path in ("", "device/", "../"))
    return next((number for number in numbers if number is not None), None)


def below(host: Host, name: str) -> Tuple[str, ...]:
    """The devices directly below: members of RAID or LVM, the paths to a namespace."""
    members = [whole_disk(host, slave) for slave in host.names(f"{BLOCK}/{name}/slaves")]
    namespace = _NAMESPACE.fullmatch(name)
    if namespace and namespace[2] is None and layer(host, name) == HEAD:
        for other in host.names(BLOCK):
            path = _NAMESPACE.fullmatch(other)
            if path and path[2] is not None and (path[1], path[3]) == (namespace[1], namespace[3]):
                members.append(other)
    return tuple(dict.fromkeys(member for member in members if member is not None))


def whole_disk(host: Host, name: str) -> Optional[str]:
    """The device that a partition is part of, or the device itself; None when there is no such name."""
    if not _NAME.fullmatch(name):
        return None
    if host.exists(f"{BLOCK}/{name}"):
        return name
    parent = posixpath.basename(posixpath.dirname(host.link(f"/sys/class/block/{name}") or ""))
    return parent if parent and host.exists(f"{BLOCK}/{parent}") else None


def aliases(host: Host) -> Dict[str, str]:
    """Path below /dev → the whole device that it is or is part of, for kernel names, partitions, and links."""
    devices: Dict[str, str] = {}
    for name in host.names("/sys/class/block"):
        device = whole_disk(host, name)
        if device is not None:
            devices[f"/dev/{name}"] = device
    for folder in _LINKS:
        for link in host.names(folder):
            target = f"/dev/{host.target(f'{folder}/{link}')}"
            if target in devices:
                devices[f"{folder}/{link}"] = devices[target]
    return devices


def mounted(host: Host, known: Dict[str, str]) -> Dict[str, Tuple[str, ...]]:
    """Mount point → the devices directly below it, for file systems on block devices."""
    devices: Dict[str, Tuple[str, ...]] = {}
    for mount in mountinfo.parse(host.text("/proc/self/mountinfo") or ""):
        node = host.target(f"/sys/dev/block/{mount.device}")
        device = known.get(f"/dev/{node}") or known.get(mount.source)
        devices.pop(mount.point, None)
        if device is not None:
            devices[mount.point] = (_btrfs(host, mount) if mount.kind == "btrfs" else ()) or (device,)
    return devices


def discarding(host: Host, known: Dict[str, str]) -> Tuple[str, ...]:
    """The devices of file systems that tell their disk of each block that they free."""
    devices = set()
    for mount in mountinfo.parse(host.text("/proc/self/mountinfo") or ""):
        if mount.discards:
            name = host.target(f"/sys/dev/block/{mount.device}")
            devices.add(known.get(f"/dev/{name}") or known.get(mount.source) or "")
    return tuple(sorted(devices - {""}))


def _btrfs(host: Host, mount: mountinfo.Mount) -> Tuple[str, ...]:
    """All devices of the btrfs: its mount names only one of them."""
    for identity in host.names("/sys/fs/btrfs"):
        members = host.names(f"/sys/fs/btrfs/{identity}/devices")
        if posixpath.basename(mount.source) in members:
            disks = (whole_disk(host, member) for member in members)
            return tuple(dict.fromkeys(member for member in disks if member is not None))
    return ()


def descended(members: Dict[str, Tuple[str, ...]], tops: Tuple[str, ...]) -> Tuple[str, ...]:
    """The devices and all devices below them, the top ones first."""
    devices = list(tops)
    reach = tops
    for _layer in range(_DEEPEST):
        reach = tuple(name for top in reach for name in members.get(top, ()) if name not in devices)
        devices += list(dict.fromkeys(reach))
    return tuple(devices)
