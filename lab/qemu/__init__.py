# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A shape as a command line of QEMU."""

from __future__ import annotations

import hashlib
import re

from lab.shape import NEAR, Shape, Xen

# Relative to the folder that QEMU runs in, so that the command line is the same for every instance.
DISK = "disk.qcow2"
SERIAL = "serial.log"
MONITOR = "monitor.sock"

# Below a Xen guest: the hypervisor, and dom0 with its address (dom0/usr/local/sbin/lab-dom0).
DOM0_DISK = "dom0.qcow2"
XEN, DOM0_KERNEL, DOM0_INITRD = "xen", "dom0-vmlinuz", "dom0-initrd.img"
DOM0_ADDRESS = "10.0.2.4"
# Which of the two disks is sda changes from boot to boot.
DOM0_LABEL = "dom0"
# QEMU loses registers of a guest whose FPU state Xen restores lazily: its programs crash.
_XEN_ARGUMENTS = "console=com1 com1=115200,8n1 dom0_mem=768M,max:768M spec-ctrl=no,eager-fpu=yes"
_DOM0_ARGUMENTS = f"root=LABEL={DOM0_LABEL} ro console=hvc0 net.ifnames=0 mitigations=off init=/usr/local/sbin/lab-dom0"

_SMBIOS_TYPES = {"bios": 0, "system": 1, "board": 2, "chassis": 3, "processor": 4}
_ROOT_DISK_SLOT = 0x3
_RANDOM_SLOT = 0x4
_FIRST_NIC_SLOT = 0x5
_FIRST_DISK_SLOT = 0x10
_FIRST_EXPANDER_SLOT = 0x18


def extra_disk(number: int) -> str:
    """The file of a disk beside the root disk, counted from 0."""
    return f"disk{number}.qcow2"


def command(shape: Shape, accel: str) -> list[str]:
    """The arguments after the program's name. The first NIC forwards a free loopback port to ssh."""
    arguments = ["-name", shape.name, "-machine", shape.machine, "-accel", accel, "-cpu", shape.cpu]
    arguments += ["-nodefaults", "-display", "none"]
    if shape.machine.startswith("q35"):
        # A port tells the kernel its slot's number only if the port itself, not ACPI, reports what is plugged in.
        arguments += ["-global", "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off"]
    firmware = shape.firmware or shape.image.architecture.firmware
    if firmware:
        arguments += ["-bios", str(firmware)]
    if shape.acpi is not None:
        # The digest says nothing to the host: it makes another snapshot of another table.
        digest = hashlib.sha256(shape.acpi.read_bytes()).hexdigest()
        arguments += ["-acpitable", f"file={shape.acpi}", "-fw_cfg", f"name=opt/lab/acpi,string={digest}"]
    arguments += _cpus_and_memory(shape) + _smbios(shape) + _buses(shape) + _disks(shape) + _nics(shape)
    arguments += _xen(shape.xen) if shape.xen else ["-device", _at(shape, "virtio-rng-pci", _RANDOM_SLOT)]
    arguments += ["-chardev", f"file,id=serial,path={SERIAL},append=on", "-serial", "chardev:serial"]
    return [*arguments, "-qmp", f"unix:{MONITOR},server=on,wait=off"]


def _cpus_and_memory(shape: Shape) -> list[str]:
    counts = f"{shape.cpus},sockets={shape.sockets},cores={shape.cores},threads={shape.threads}"
    arguments = ["-smp", counts, "-m", f"{shape.memory_mib}M"]
    per_node = shape.cpus // shape.nodes
    memory = shape.memory_mib // shape.nodes
    for node in range(shape.nodes):
        cpus = f"{node * per_node}-{(node + 1) * per_node - 1}"
        arguments += ["-object", f"memory-backend-ram,id=memory{node},size={memory}M"]
        arguments += ["-numa", f"node,nodeid={node},memdev=memory{node},cpus={cpus}"]
    return arguments


def _smbios(shape: Shape) -> list[str]:
    arguments: list[str] = []
    for kind, number in _SMBIOS_TYPES.items():
        # QEMU takes a doubled comma as one; an empty string is a field that the host leaves out.
        fields = [f"{name}={value.replace(',', ',,')}" for name, value in shape.smbios[kind].items() if value]
        if fields:
            arguments += ["-smbios", f"type={number},{','.join(fields)}"]
    return arguments


def _buses(shape: Shape) -> list[str]:
    """A PCI bus of its own for each node that a device lies near; the firmware says whose it is."""
    arguments: list[str] = []
    for node in shape.device_nodes:
        place = f"bus=pci.0,addr={_FIRST_EXPANDER_SLOT + node:#x},bus_nr={0x20 * (node + 1)}"
        arguments += ["-device", f"pxb,id=node{node},{place},numa_node={node}"]
    return arguments


def _xen(xen: Xen) -> list[str]:
    """Virtio would give devices addresses that mean nothing in dom0, so there are none of them."""
    dom0 = f"{DOM0_KERNEL} {_DOM0_ARGUMENTS} lab.guest={xen.guest}"
    return ["-kernel", XEN, "-append", _XEN_ARGUMENTS, "-initrd", f"{dom0},{DOM0_INITRD}"]


def _disks(shape: Shape) -> list[str]:
    if shape.xen:
        dom0 = _disk("dom0", DOM0_DISK, "ide-hd,bus=ide.0", shape.disk_cache)
        return dom0 + _disk("root", DISK, "ide-hd,bus=ide.1,serial=guest", shape.disk_cache)
    arguments = _disk("root", DISK, _at(shape, "virtio-blk-pci", _ROOT_DISK_SLOT), shape.disk_cache)
    for number, disk in enumerate(shape.disks):
        device = _at(shape, disk.device, _FIRST_DISK_SLOT + number)
        arguments += _disk(f"disk{number}", extra_disk(number), device, shape.disk_cache)
    return arguments


def _at(shape: Shape, device: str, slot: int) -> str:
    """A device in a slot of its bus; beside other buses QEMU needs the name of the first one."""
    bus = ",bus=pci.0" if shape.device_nodes and not NEAR.search(device) else ""
    return f"{device}{bus},addr={slot:#x}"


def _disk(name: str, file: str, device: str, cache: str) -> list[str]:
    return ["-drive", f"file={file},if=none,id={name},cache={cache}", "-device", f"{device},drive={name}"]


def _nics(shape: Shape) -> list[str]:
    arguments: list[str] = []
    for number, nic in enumerate(shape.nics):
        dom0 = f",hostfwd=tcp:127.0.0.1:0-{DOM0_ADDRESS}:22" if shape.xen else ""
        arguments += ["-netdev", _backend(number, nic) + dom0]
        device, port = _slot(shape, f"{nic},netdev=net{number}", _FIRST_NIC_SLOT + number)
        arguments += [*port, "-device", device]
    return arguments


def _slot(shape: Shape, device: str, slot: int) -> tuple[str, list[str]]:
    """A device where the host sees it in this slot, and the port that makes it so."""
    if not shape.pcie_ports:
        return _at(shape, device, slot), []
    port = f"pcie-root-port,id=port{slot},slot={slot},chassis={slot},addr={slot:#x}"
    return f"{device},bus=port{slot}", ["-device", port]


def _backend(number: int, nic: str) -> str:
    """Queues need a tap device, which needs root: QEMU's own network has one queue. Nothing is connected to the tap."""
    vectors = re.search(r"mq=on.*vectors=(\d+)", nic)
    if vectors:
        # A vector per direction of each queue, one for the configuration, one for the control queue.
        return f"tap,id=net{number},queues={(int(vectors[1]) - 2) // 2},script=no,downscript=no,vhost=off"
    forward = ",hostfwd=tcp:127.0.0.1:0-:22" if number == 0 else ""
    return f"user,id=net{number},restrict=on{forward}"
