# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host class, on hosts written by hand after the manuals (nobody's recording)."""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Optional

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.platform import observe

Build = Callable[[Mapping[str, str]], Host]

DMI = "/sys/devices/virtual/dmi/id/"
VIRTUAL_X86 = "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu lm tsc hypervisor\n"
REAL_X86 = "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu lm tsc\n"
ARM64 = "processor\t: 0\nFeatures\t: fp atomics\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd40\n"

XEN_HVM = {
    "/proc/cpuinfo": VIRTUAL_X86,
    "/sys/hypervisor/type": "xen\n",
    "/sys/hypervisor/guest_type": "HVM\n",
    "/sys/hypervisor/uuid": "ec2b1b0e-1f2a-1111-2222-333344445555\n",
    "/sys/hypervisor/version/extra": ".amazon\n",
    DMI + "sys_vendor": "Xen\n",
    DMI + "bios_vendor": "Xen\n",
    DMI + "product_name": "HVM domU\n",
    DMI + "bios_version": "4.2.amazon\n",
}
XEN_PV = {
    "/proc/cpuinfo": VIRTUAL_X86,
    "/sys/hypervisor/type": "xen\n",
    "/sys/hypervisor/guest_type": "PV\n",
    "/sys/hypervisor/uuid": "ec2b1b0e-1f2a-1111-2222-333344445555\n",
}


def amazon(cpuinfo: str, product: str) -> Dict[str, str]:
    """A host whose firmware is Amazon's."""
    return {
        "/proc/cpuinfo": cpuinfo,
        DMI + "sys_vendor": "Amazon EC2\n",
        DMI + "bios_vendor": "Amazon EC2\n",
        DMI + "product_name": product + "\n",
        DMI + "board_asset_tag": "i-0123456789abcdef0\n",
    }


def without(files: Mapping[str, str], *beginnings: str) -> Dict[str, str]:
    """The files except those below these folders."""
    return {name: text for name, text in files.items() if not name.startswith(beginnings)}


CASES: Dict[str, Any] = {
    # name: (files, host class, hypervisor, virtualization, instance type, burstable)
    "xen hvm": (XEN_HVM, "xen_hvm", "xen", "hvm", None, None),
    "xen hvm, kernel without /sys/hypervisor": (
        without(XEN_HVM, "/sys/hypervisor"),
        "xen_hvm",
        "xen",
        "hvm",
        None,
        None,
    ),
    "xen hvm, kernel before 4.13": (without(XEN_HVM, "/sys/hypervisor/guest"), "xen_hvm", "xen", "hvm", None, None),
    "xen hvm, known by a UUID with swapped bytes": (
        {
            **without(XEN_HVM, "/sys/hypervisor", DMI + "bios_version"),
            DMI + "product_uuid": "45E12AEC-DCD1-B213-94ED-01234567890A\n",
        },
        "xen_hvm",
        "xen",
        "hvm",
        None,
        None,
    ),
    "xen pv": (XEN_PV, "xen_pv", "xen", "pv", None, None),
    "xen pv, kernel before 4.13": (without(XEN_PV, "/sys/hypervisor/guest"), "xen_pv", "xen", "pv", None, None),
    "xen of somebody else": (
        {
            **XEN_HVM,
            "/sys/hypervisor/uuid": "0c2b1b0e-1f2a-1111-2222-333344445555\n",
            "/sys/hypervisor/version/extra": ".2\n",
            DMI + "bios_version": "4.17.2\n",
        },
        "not_ec2",
        "xen",
        "hvm",
        None,
        None,
    ),
    "nitro": (amazon(VIRTUAL_X86, "m5.large"), "nitro", "nitro", "hvm", "m5.large", False),
    "nitro burstable": (amazon(VIRTUAL_X86, "t3a.nano"), "nitro", "nitro", "hvm", "t3a.nano", True),
    "nitro burstable of a family to come": (
        amazon(VIRTUAL_X86, "t9i.large"),
        "nitro",
        "nitro",
        "hvm",
        "t9i.large",
        True,
    ),
    "nitro that only begins with a t": (
        amazon(VIRTUAL_X86, "trn1.2xlarge"),
        "nitro",
        "nitro",
        "hvm",
        "trn1.2xlarge",
        False,
    ),
    "graviton": (amazon(ARM64, "m7g.large"), "nitro", "nitro", "hvm", "m7g.large", False),
    "graviton burstable": (amazon(ARM64, "t4g.small"), "nitro", "nitro", "hvm", "t4g.small", True),
    # Amazon's firmware does not mean that the host is a guest.
    "metal by its type": (amazon(REAL_X86, "m5.metal"), "metal", "none", "none", "m5.metal", False),
    "metal by type and size": (amazon(REAL_X86, "i7ie.metal-48xl"), "metal", "none", "none", "i7ie.metal-48xl", False),
    "metal by the missing flag": (amazon(REAL_X86, "u-6tb1.56xl"), "metal", "none", "none", "u-6tb1.56xl", False),
    "graviton metal, where no flag can tell": (amazon(ARM64, "c7g.metal"), "metal", "none", "none", "c7g.metal", False),
    "a type that is none": (amazon(VIRTUAL_X86, "<b>m5</b>"), "nitro", "nitro", "hvm", None, None),
    "another virtual machine": (
        {"/proc/cpuinfo": VIRTUAL_X86, DMI + "sys_vendor": "QEMU\n", DMI + "product_name": "t3.large\n"},
        "not_ec2",
        "other",
        None,
        None,
        None,
    ),
    "somebody's server": (
        {"/proc/cpuinfo": REAL_X86, DMI + "board_asset_tag": "i-0123456789abcdef0\n"},
        "not_ec2",
        "none",
        "none",
        None,
        None,
    ),
    "nothing to read": ({}, "not_ec2", None, None, None, None),
}


@pytest.mark.parametrize("name", CASES)
def test_host_class(name: str, host_of: Build) -> None:
    files, *expected = CASES[name]
    facts = observe(host_of(files))
    found = [facts.host_class, facts.hypervisor, facts.virtualization, facts.instance_type, facts.burstable]
    assert found == expected


@pytest.mark.parametrize(
    ("cpuinfo", "flag", "architecture"),
    [(VIRTUAL_X86, True, "x86_64"), (REAL_X86, False, "x86_64"), (ARM64, None, "aarch64"), ("", None, None)],
)
def test_the_hypervisor_flag_is_unknown_where_the_architecture_has_none(
    cpuinfo: str, flag: Optional[bool], architecture: Optional[str], host_of: Build
) -> None:
    facts = observe(host_of({"/proc/cpuinfo": cpuinfo}))
    assert facts.hypervisor_flag is flag
    assert facts.architecture == architecture


def test_the_instance_id_is_read_only_where_the_firmware_is_amazons(host_of: Build) -> None:
    assert observe(host_of(amazon(ARM64, "m7g.large"))).instance_id == "i-0123456789abcdef0"


def test_an_old_kernel_of_arm64_lists_all_processors_before_it_names_them(host_of: Build) -> None:
    text = "Processor\t: AArch64 Processor rev 1 (aarch64)\nprocessor\t: 0\nprocessor\t: 1\nFeatures\t: fp asimd \n"
    text += (
        "CPU implementer\t: 0x41\nCPU architecture: AArch64\nCPU variant\t: 0x0\nCPU part\t: 0xd07\n\nHardware\t: x\n"
    )
    facts = observe(host_of({**amazon(text, "a1.large")}))
    assert (facts.architecture, facts.hypervisor_flag, facts.host_class) == ("aarch64", None, "nitro")


HOST_GROUP = "0::/user.slice/user-1000.slice/session-3.scope\n"
FIRST = "-> pid:[4026531836]"
CONTAINERS: Dict[str, Any] = {
    "named by systemd": ({"/run/systemd/container": "systemd-nspawn\n"}, "systemd-nspawn"),
    "docker": ({"/.dockerenv": "", "/proc/self/ns/pid": "-> pid:[4026532201]"}, "docker"),
    "podman": ({"/run/.containerenv": "", "/proc/self/ns/pid": "-> pid:[4026532201]"}, "podman"),
    "a pod": (
        {"/var/run/secrets/kubernetes.io/token": "", "/proc/self/ns/pid": "-> pid:[4026532201]"},
        "kubernetes",
    ),
    "known by its PID namespace alone": ({"/proc/self/ns/pid": "-> pid:[4026532201]"}, "other"),
    "docker in the host's PID namespace": (
        {"/.dockerenv": "", "/proc/self/ns/pid": FIRST, "/proc/self/cgroup": "0::/system.slice/docker-" + "0a" * 32},
        "docker",
    ),
    "control groups of its own in the host's PID namespace": (
        {"/proc/self/ns/pid": FIRST, "/proc/self/cgroup": "0::/\n", "/proc/1/cgroup": "0::/../../../init.scope\n"},
        "none",
    ),
    "the same with a marker": (
        {
            "/.dockerenv": "",
            "/proc/self/ns/pid": FIRST,
            "/proc/self/cgroup": "0::/\n",
            "/proc/1/cgroup": "0::/../../../init.scope\n",
        },
        "docker",
    ),
    "a host whose image was made from a container": (
        {"/.dockerenv": "", "/proc/self/ns/pid": FIRST, "/proc/self/cgroup": HOST_GROUP},
        "none",
    ),
    "a host that runs docker": (
        {"/proc/self/ns/pid": FIRST, "/proc/self/cgroup": "0::/system.slice/docker.service\n"},
        "none",
    ),
    "a host": ({"/proc/self/ns/pid": FIRST, "/proc/self/cgroup": HOST_GROUP}, "none"),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_container(name: str, host_of: Build) -> None:
    files, expected = CONTAINERS[name]
    facts = observe(host_of({**amazon(VIRTUAL_X86, "m5.large"), **files}))
    assert facts.container == expected
    assert facts.host_class == ("nitro" if expected == "none" else "container")
    assert facts.instance_type == "m5.large"


LOADERS: Dict[str, Any] = {
    "grub_pc": {"/boot/grub/grub.cfg": ""},
    "grub_efi": {"/boot/grub/grub.cfg": "", "/sys/firmware/efi/systab": ""},
    "grub_bls": {"/boot/grub2/grub.cfg": "", "/boot/loader/entries/6.1.conf": "", "/sys/firmware/efi/systab": ""},
    "grub_legacy": {"/boot/grub/menu.lst": ""},
    "systemd_boot": {"/boot/efi/loader/entries/6.1.conf": ""},
    None: {"/boot/vmlinuz": ""},
}


@pytest.mark.parametrize("name", LOADERS)
def test_boot_loader(name: Optional[str], host_of: Build) -> None:
    assert observe(host_of(LOADERS[name])).boot_loader == name


def test_system_and_kernel(host_of: Build) -> None:
    files = {
        "/etc/os-release": "-> /usr/lib/os-release",
        "/usr/lib/os-release": 'ID="rhel"\nVERSION_ID="8.3"\n',
        "/proc/sys/kernel/osrelease": "4.18.0-240.1.1.el8_3.x86_64\n",
        "/proc/sys/kernel/arch": "x86_64\n",
        "/sys/kernel/sched_ext/root/ops": "lavd_1.0.17\n",
    }
    facts = observe(host_of(files))
    assert (facts.distribution, facts.distribution_version) == ("rhel", "8.3")
    assert (facts.kernel_version, facts.kernel_build) == ((4, 18, 0), (240, 1, 1))
    assert (facts.architecture, facts.scheduler) == ("x86_64", "lavd_1.0.17")
