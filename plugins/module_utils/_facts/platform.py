# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts about what kind of host this is: the host class of EC2. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Dict, NamedTuple, Optional, Tuple

from .._error import NearmetalError
from .._parse import kernel_release, os_release
from .._parse.cpuinfo import CpuInfo
from .cpu import first_processor, under_hypervisor
from .host import Host

DMI = "/sys/devices/virtual/dmi/id"
XEN = "/sys/hypervisor"

# m5.large, u-6tb1.metal, hpc7a.96xlarge, i7ie.metal-48xl
INSTANCE_TYPE = re.compile(r"[a-z][a-z0-9-]{0,31}\.[a-z0-9-]{1,31}", re.ASCII)
# Families with CPU credits (docs/ec2.md#cpu-credits): t2, t3a, t4g and later ones. A host has no table of types.
_BURSTABLE = re.compile(r"t[0-9]+[a-z]*", re.ASCII)
_WITHOUT_CREDITS = ("t1", "t8i")  # by DescribeInstanceTypes
_SCHEDULER = re.compile(r"[A-Za-z0-9_.-]{1,127}", re.ASCII)
_INSTANCE_ID = re.compile(r"i-[0-9a-f]{8,17}", re.ASCII)
# The link of a process in the first PID namespace (PROC_PID_INIT_INO in the kernel's include/linux/proc_ns.h).
_FIRST_PID_NAMESPACE = "pid:[4026531836]"
# The control group of a container: its 64 digits, or the folder of its engine. A container with control groups
# of its own sees those of the host as "/..".
CONTAINER_GROUP = re.compile(r"[0-9a-f]{64}|/docker/|/kubepods[/.]|/lxc/|/lxc\.payload\.", re.ASCII)
MARKERS = (
    ("/.dockerenv", "docker"),
    ("/run/.containerenv", "podman"),
    ("/run/secrets/kubernetes.io", "kubernetes"),
    ("/var/run/secrets/kubernetes.io", "kubernetes"),
)


class PlatformFacts(NamedTuple):
    """What kind of host this is. None is what can't be known."""

    host_class: str  # xen_pv | xen_hvm | nitro | metal | not_ec2 | container
    hypervisor: Optional[str]  # xen | nitro | other | none, on EC2 or not
    virtualization: Optional[str]  # pv | hvm | pvh | none
    hypervisor_flag: Optional[bool]  # the x86 CPU flag; None on arm64, which has no such flag
    container: str  # docker | podman | kubernetes | systemd's name for it | other | none
    architecture: Optional[str]  # as uname: x86_64, aarch64
    instance_type: Optional[str]  # None on Xen, whose DMI says only "HVM domU"
    instance_id: Optional[str]
    burstable: Optional[bool]  # T family; None when the type isn't known
    distribution: Optional[str]  # ID of os-release: amzn, ubuntu, rhel
    distribution_version: Optional[str]  # VERSION_ID
    kernel: Optional[str]  # the release, as uname -r
    kernel_version: Optional[Tuple[int, int, int]]
    kernel_build: Optional[Tuple[int, ...]]  # "4.18.0-240.1.1.el8" is (240, 1, 1)
    boot_loader: Optional[str]  # grub_pc | grub_efi | grub_bls | grub_legacy | systemd_boot; a guess from files
    scheduler: Optional[str]  # the program of sched_ext that schedules tasks; None: the kernel's own


def observe(host: Host) -> PlatformFacts:
    """Read DMI, the Xen files, the first processor, os-release and the boot files. No metadata service."""
    processor = first_processor(host)
    flag = under_hypervisor(processor)
    container = _container(host)
    under, virtualization, on_ec2 = _machine(host, flag)
    if container != "none":
        host_class = "container"
    elif not on_ec2:
        host_class = "not_ec2"
    elif under == "xen":
        host_class = "xen_pv" if virtualization == "pv" else "xen_hvm"
    else:
        host_class = "nitro" if under == "nitro" else "metal"
    instance_type = _match(INSTANCE_TYPE, host.line(DMI + "/product_name")) if on_ec2 and under != "xen" else None
    release = host.line("/proc/sys/kernel/osrelease")
    version, build = _numbers(release)
    distribution = os_release_of(host)
    return PlatformFacts(
        host_class=host_class,
        hypervisor=under,
        virtualization=virtualization,
        hypervisor_flag=flag,
        container=container,
        architecture=_architecture(host, processor),
        instance_type=instance_type,
        instance_id=_match(_INSTANCE_ID, host.line(DMI + "/board_asset_tag")) if on_ec2 else None,
        burstable=is_burstable(instance_type) if instance_type is not None else None,
        distribution=distribution.get("ID"),
        distribution_version=distribution.get("VERSION_ID"),
        kernel=release,
        kernel_version=version,
        kernel_build=build,
        boot_loader=_boot_loader(host),
        scheduler=_match(_SCHEDULER, host.line("/sys/kernel/sched_ext/root/ops")),
    )


def os_release_of(host: Host) -> Dict[str, str]:
    """The variables of os-release: ID, VERSION_ID, …"""
    return os_release.parse(host.text("/etc/os-release") or host.text("/usr/lib/os-release") or "")


def is_burstable(instance_type: str) -> bool:
    """Whether the type pays for its CPU time with credits, by its name."""
    family = instance_type.split(".")[0]
    return _BURSTABLE.fullmatch(family) is not None and family not in _WITHOUT_CREDITS


def _machine(host: Host, flag: Optional[bool]) -> Tuple[Optional[str], Optional[str], bool]:
    """Hypervisor, virtualization, and whether this is EC2."""
    vendors = (host.line(DMI + "/sys_vendor"), host.line(DMI + "/bios_vendor"))
    if "Amazon EC2" in vendors:
        # Other tools call every "Amazon EC2" a KVM guest, metal too. Metal has ".metal" in its
        # type or, x86 only, no hypervisor flag.
        if ".metal" in (host.line(DMI + "/product_name") or "") or flag is False:
            return "none", "none", True
        return "nitro", "hvm", True
    hvm = host.line(DMI + "/product_name") == "HVM domU"
    if host.line(XEN + "/type") == "xen" or (hvm and "Xen" in vendors):
        return "xen", _xen_guest(host, hvm), _xen_on_ec2(host)
    if flag is None:
        return None, None, False
    return ("other", None, False) if flag else ("none", "none", False)


def _xen_guest(host: Host, hvm: bool) -> str:
    """pv, hvm or pvh. guest_type is there since Linux 4.13; before, only HVM has DMI."""
    guest_type = (host.line(XEN + "/guest_type") or "").lower()
    if guest_type in ("pv", "hvm", "pvh"):
        return guest_type
    return "hvm" if hvm or host.exists(DMI) else "pv"


def _xen_on_ec2(host: Host) -> bool:
    """Xen of Amazon: by the version's suffix, or by a UUID that begins with ec2 (SMBIOS may swap its bytes)."""
    versions = (host.line(path) for path in (f"{XEN}/version/extra", f"{DMI}/bios_version"))
    uuids = (host.line(path) for path in (f"{XEN}/uuid", f"{DMI}/product_uuid"))
    return any((text or "").endswith(".amazon") for text in versions) or any(
        re.match(r"ec2|[0-9a-f]{4}2[0-9a-f]ec-", (text or "").lower()) for text in uuids
    )


def _container(host: Host) -> str:
    """The kind of container that we are in, "other" when only a namespace shows one, "none" for a host.

    An image that was made from a container keeps its marker files. So in the first PID
    namespace a marker counts only if our control group is a container's too.
    """
    named = host.line("/run/systemd/container")
    if named is not None and re.fullmatch(r"[a-z][a-z0-9-]{0,31}", named, re.ASCII):
        return named
    marked = next((name for path, name in MARKERS if host.exists(path)), None)
    namespace = host.link("/proc/self/ns/pid")
    if namespace == _FIRST_PID_NAMESPACE:
        process_group, init_group = host.text("/proc/self/cgroup") or "", host.text("/proc/1/cgroup") or ""
        if not CONTAINER_GROUP.search(process_group) and "/.." not in init_group:
            return "none"
    return marked or ("none" if namespace in (None, _FIRST_PID_NAMESPACE) else "other")


def _architecture(host: Host, processor: CpuInfo) -> Optional[str]:
    """The machine by uname; for another root by its kernel (6.1 or newer) or its first processor."""
    machine = host.machine() or host.line("/proc/sys/kernel/arch")
    if machine is not None:
        return machine
    if processor.arm64:
        return "aarch64"
    return "x86_64" if processor.x86 and "lm" in (processor.flags or ()) else None


def _boot_loader(host: Host) -> Optional[str]:
    """A guess from the files of boot loaders; None when there are none that we know or may read."""
    entries = any(name.endswith(".conf") for name in host.names("/boot/loader/entries"))
    if host.exists("/boot/grub2/grub.cfg") or host.exists("/boot/grub/grub.cfg"):
        if entries:
            return "grub_bls"
        return "grub_efi" if host.exists("/sys/firmware/efi") else "grub_pc"
    if host.exists("/boot/grub/menu.lst") or host.exists("/boot/grub/grub.conf"):
        return "grub_legacy"
    # On Debian the EFI partition is at /boot/efi.
    elsewhere = (name for root in ("/efi", "/boot/efi") for name in host.names(f"{root}/loader/entries"))
    if entries or any(name.endswith(".conf") for name in elsewhere):
        return "systemd_boot"
    return None


def _numbers(release: Optional[str]) -> Tuple[Optional[Tuple[int, int, int]], Optional[Tuple[int, ...]]]:
    try:
        return kernel_release.parse(release or "")
    except NearmetalError:
        return None, None


def _match(pattern: "re.Pattern[str]", text: Optional[str]) -> Optional[str]:
    """The text when it has that form; no other text of DMI is reported."""
    return text if text is not None and pattern.fullmatch(text) else None
