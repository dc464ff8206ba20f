# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts and images as data: a file in hosts/ describes a shape, a file in images/ a distribution."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from lab.architecture import AMD64, BY_NAME, Architecture
from lab.error import LabError
from lab.shape.toml import Table

HOSTS = Path(__file__).parents[1] / "hosts"
IMAGES = Path(__file__).parents[1] / "images"
XEN_GUESTS = ("pv", "pvh", "hvm")
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
NEAR = re.compile(r",bus=node([0-9]+)\b")


@dataclasses.dataclass(frozen=True)
class Disk:
    """An empty disk beside the root disk; `device` is a QEMU device such as "virtio-blk-pci,serial=vol1"."""

    device: str
    size_mib: int


@dataclasses.dataclass(frozen=True)
class Image:
    """A distribution: what the root disk is built from."""

    name: str
    architecture: Architecture
    suite: str
    pockets: tuple[str, ...]
    components: tuple[str, ...]
    packages: tuple[str, ...]
    modules: tuple[str, ...]  # the drivers that its initramfs has; none: all that Debian puts there
    disk_mib: int


@dataclasses.dataclass(frozen=True)
class Xen:
    """What runs below a Xen guest; dom0/etc/xen/lab-GUEST.cfg describes the guest to xl."""

    guest: str  # pv | pvh | hvm
    dom0: Image


@dataclasses.dataclass(frozen=True)
class Shape:
    """One kind of host. Counts follow lscpu: cores are per socket, threads per core.

    A NIC is a QEMU device such as virtio-net-pci. The first one is ens5, as on EC2; the next ones follow it.
    A NIC or disk with `bus=node1` lies near that node; others lie near none.
    With `xen`, CPUs, memory and NIC are those below Xen; image, kernel arguments and disk are its guest's.
    """

    name: str
    about: str
    image: Image
    qemu: int  # the release of QEMU that its devices need; 0: any
    machine: str
    cpu: str
    sockets: int
    cores: int
    threads: int
    nodes: int
    memory_mib: int
    firmware: Path | None  # other than its architecture's own
    acpi: Path | None  # a table of the firmware to add, compiled
    kernel_args: str
    smbios: dict[str, dict[str, str]]
    nics: tuple[str, ...]
    disks: tuple[Disk, ...]
    disk_cache: str  # unsafe | writeback: a real disk's, which loses at a power cut what was not flushed
    xen: Xen | None
    patience: int  # how many times longer than others it may take to boot, and be silent on its console

    @property
    def cpus(self) -> int:
        """Logical CPUs."""
        return self.sockets * self.cores * self.threads

    @property
    def device_nodes(self) -> tuple[int, ...]:
        """The nodes that a NIC or disk lies near."""
        devices = (*self.nics, *(disk.device for disk in self.disks))
        return tuple(sorted({int(node) for device in devices for node in NEAR.findall(device)}))

    @property
    def pcie_ports(self) -> bool:
        """Whether a NIC needs a PCIe port to be in the slot of its name, and to be unplugged."""
        return self.image.architecture.pcie_ports or self.machine.startswith("q35")

    @property
    def can_be_saved(self) -> bool:
        """Whether QEMU can save a running host of this shape: not with its NVMe device."""
        return not any(disk.device.startswith("nvme") for disk in self.disks)


def _firmware(path: str) -> Path | None:
    if path and not Path(path).is_file():
        raise LabError(f"there is no firmware {path}; run: python3 -m lab doctor --install")
    return Path(path) if path else None


def _acpi(name: str) -> Path | None:
    path = Path(__file__).parents[1] / "acpi" / f"{name}.aml"
    if name and not path.is_file():
        raise LabError(f"no ACPI table is called {name}: {path} is missing")
    return path if name else None


def names() -> list[str]:
    """The shapes that the lab ships."""
    return sorted(path.stem for path in HOSTS.glob("*.toml"))


def load(name: str) -> Shape:
    """A shape by its name in hosts/, or by the path of a .toml file of your own."""
    path = Path(name) if name.endswith(".toml") else HOSTS / f"{name}.toml"
    if not path.is_file():
        raise LabError(f"no host is called {name}; known: {', '.join(names())}, or give the path of a .toml file")
    if not NAME.fullmatch(path.stem):
        raise LabError(f"{path}: a host's name is made of a-z, 0-9, - and _, 40 characters at most")
    return _shape(path.stem, _with_base(path))


def _with_base(path: Path, seen: tuple[Path, ...] = ()) -> Table:
    table = Table.read(path)
    base = table.take("like", str, "")
    if not base:
        return table
    if path in seen:
        raise LabError(f'{path}: like = "{base}" leads back to this file')
    return table.under(_with_base(HOSTS / f"{base}.toml", (*seen, path)))


def _shape(name: str, table: Table) -> Shape:
    shape = Shape(
        name=name,
        about=table.take("about", str),
        image=_image(table.take("image", str)),
        qemu=table.take("qemu", int),
        machine=table.take("machine", str),
        cpu=table.take("cpu", str),
        sockets=table.take("sockets", int),
        cores=table.take("cores", int),
        threads=table.take("threads", int),
        nodes=table.take("nodes", int),
        memory_mib=table.take("memory_mib", int),
        firmware=_firmware(table.take("firmware", str, "")),
        acpi=_acpi(table.take("acpi", str, "")),
        kernel_args=table.take("kernel_args", str),
        smbios={kind: table.pairs(kind) for kind in ("bios", "system", "board", "chassis", "processor")},
        nics=table.strings("nics"),
        disks=tuple(_disk(disk) for disk in table.tables("disks")),
        disk_cache=table.take("disk_cache", str),
        xen=_xen(table.table("xen")),
        patience=table.take("patience", int),
    )
    table.done()
    if shape.xen and (shape.disks or len(shape.nics) > 1):
        raise LabError(f"{name}: a Xen guest's disks and NICs are those of lab/dom0/etc/xen/lab.cfg; leave out disks")
    if shape.disk_cache not in ("unsafe", "writeback"):
        raise LabError(f"{name}: disk_cache is unsafe or writeback, not {shape.disk_cache}")
    counts = (shape.sockets, shape.cores, shape.threads, shape.nodes, shape.patience, len(shape.nics))
    if min(*counts, shape.memory_mib // 256) < 1:
        least = "nodes, patience and nics must be 1 or more, memory_mib 256 or more"
        raise LabError(f"{name}: sockets, cores, threads, {least}")
    if shape.cpus % shape.nodes or shape.memory_mib % shape.nodes:
        raise LabError(f"{name}: {shape.cpus} CPUs and {shape.memory_mib} MiB don't divide into {shape.nodes} nodes")
    if any(node >= shape.nodes for node in shape.device_nodes):
        raise LabError(f"{name}: a device lies near node {shape.device_nodes[-1]}, and there are {shape.nodes} nodes")
    return shape


def _disk(table: Table) -> Disk:
    disk = Disk(table.take("device", str), table.take("size_mib", int))
    table.done()
    return disk


def _xen(table: Table | None) -> Xen | None:
    if table is None:
        return None
    xen = Xen(table.take("guest", str), _image(table.take("image", str)))
    table.done()
    if xen.guest not in XEN_GUESTS:
        raise LabError(f"xen.guest is {', '.join(XEN_GUESTS)}, not {xen.guest}")
    return xen


def _image(name: str) -> Image:
    table = Table.read(IMAGES / f"{name}.toml")
    architecture = table.take("architecture", str, AMD64.name)
    if architecture not in BY_NAME:
        raise LabError(f"{name}: architecture is {' or '.join(BY_NAME)}, not {architecture}")
    image = Image(
        name,
        BY_NAME[architecture],
        table.take("suite", str),
        table.strings("pockets"),
        table.strings("components"),
        table.strings("packages"),
        table.strings("modules"),
        table.take("disk_mib", int),
    )
    table.done()
    return image
