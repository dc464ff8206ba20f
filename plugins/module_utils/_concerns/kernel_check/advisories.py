# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""kernel_check: known faults of drivers and kernels, of which hosts, and how long systems are supported. PRIVATE.

A gate fails on the day after an entry `expires`: then read its source again, and change the entry or give it new dates.
"""

from __future__ import annotations

from typing import Mapping, NamedTuple, Optional, Tuple

Version = Tuple[int, ...]
# ID and VERSION_ID of os-release (or its beginning, up to a dot) → the last day of its public support, without
# extensions that cost extra.
END_OF_LIFE: Mapping[Tuple[str, str], str] = {
    ("amzn", "2018"): "2023-12-31",
    ("amzn", "2"): "2026-06-30",
    ("amzn", "2023"): "2029-06-30",
    ("centos", "6"): "2020-11-30",
    ("centos", "7"): "2024-06-30",
    ("centos", "8"): "2024-05-31",
    ("centos", "9"): "2027-05-31",
    ("centos", "10"): "2030-05-31",
    ("rhel", "6"): "2020-11-30",
    ("rhel", "7"): "2024-06-30",
    ("rhel", "8"): "2029-05-31",
    ("rhel", "9"): "2032-05-31",
    ("rhel", "10"): "2035-05-31",
    ("rocky", "8"): "2029-05-31",
    ("rocky", "9"): "2032-05-31",
    ("rocky", "10"): "2035-05-31",
    ("almalinux", "8"): "2029-05-31",
    ("almalinux", "9"): "2032-05-31",
    ("almalinux", "10"): "2035-05-31",
    ("ol", "7"): "2024-12-31",
    ("ol", "8"): "2029-07-31",
    ("ol", "9"): "2032-06-30",
    ("ol", "10"): "2035-06-30",
    ("ubuntu", "14.04"): "2019-04-30",
    ("ubuntu", "16.04"): "2021-04-30",
    ("ubuntu", "18.04"): "2023-05-31",
    ("ubuntu", "20.04"): "2025-05-31",
    ("ubuntu", "22.04"): "2027-04-30",
    ("ubuntu", "24.04"): "2029-04-30",
    ("ubuntu", "26.04"): "2031-04-30",
    ("debian", "9"): "2022-06-30",
    ("debian", "10"): "2024-06-30",
    ("debian", "11"): "2026-08-31",
    ("debian", "12"): "2028-06-30",
    ("debian", "13"): "2030-06-30",
    ("sles", "12.5"): "2024-10-31",
    ("sles", "15.5"): "2024-12-31",
    ("sles", "15.6"): "2025-12-31",
    ("sles", "15.7"): "2031-07-31",
    ("sles", "16.0"): "2027-11-30",
}


class Versions(NamedTuple):
    """The versions from `first` on, before `fixed`; without numbers there is no such bound."""

    first: Version = ()
    fixed: Version = ()

    def include(self, version: Version) -> bool:
        """Whether a version is among them; 2.17 is 2.17.0."""
        length = max(len(self.first), len(self.fixed), len(version))
        padded = _padded(version, length)
        return _padded(self.first, length) <= padded and (not self.fixed or padded < _padded(self.fixed, length))


class Advisory(NamedTuple):
    """A fault that was reported, and what to do where it may show. An empty condition holds on every host."""

    name: str
    symptom: str
    do: str
    reference: str
    checked: str  # the day on which the source was read
    expires: str  # the last day on which nobody need read it again
    ena: Optional[Versions] = None  # of the driver that AWS publishes, which Amazon Linux ships; not the kernel's own
    kernel: Optional[Versions] = None  # as Linux counts; a distribution may have taken a later fix into an older kernel
    classes: Tuple[str, ...] = ()


ADVISORIES: Tuple[Advisory, ...] = (
    Advisory(
        name="ena_detach_panic",
        symptom="detaching a network interface from the running instance may end in a kernel panic and a reboot",
        do="upgrade the driver, or the kernel that contains it; until then detach no interface while the host runs",
        reference="amzn-drivers on GitHub, issue 379; amzn-drivers on GitHub, issue 380",
        checked="2026-11-23",
        expires="2028-05-31",
        ena=Versions((2, 17, 0), (2, 17, 2)),
    ),
    Advisory(
        name="ena_receive_steering_panic",
        symptom="the kernel may panic when it steers received packets to CPUs (RPS, RFS) and ntuple filters are on",
        do=(
            "upgrade the driver; until then leave network_irq's rps and rfs, and network_stack's offloads.ntuple alone"
        ),
        reference="ENA driver release notes, 2.13.2; amzn-drivers on GitHub, commit b1c6fc5",
        checked="2026-11-23",
        expires="2028-05-31",
        ena=Versions((2, 13, 0), (2, 13, 2)),
    ),
    Advisory(
        name="ena_ptp_clock_panic",
        symptom="with the driver's PTP clock (phc_enable=1) a program that adjusts it makes this kernel crash",
        do="upgrade the driver before you enable its clock",
        reference="ENA driver release notes, 2.13.1; amzn-drivers on GitHub, issue 322",
        checked="2026-11-23",
        expires="2028-05-31",
        ena=Versions((2, 8, 0), (2, 13, 1)),
        kernel=Versions((6, 2)),
    ),
    Advisory(
        name="xen_empty_msi_irqs",
        symptom="tools that look for a NIC's interrupts in its folder msi_irqs, as older perftune.py did, find none",
        do="use versions of such tools that read /proc/interrupts, as nearmetal does",
        reference="amzn-drivers on GitHub, issue 268; seastar on GitHub, issue 1622",
        checked="2026-11-23",
        expires="2028-05-31",
        kernel=Versions((5, 17)),
        classes=("xen_hvm",),
    ),
    Advisory(
        name="lazy_preemption",
        symptom=(
            "Linux 7.0 made PREEMPT_LAZY the default; programs that spin on locks of their own may lose much throughput"
            " (AWS: PostgreSQL 17 at 0.51 of its throughput on 96 vCPUs of Graviton4; unmeasured by us)"
        ),
        do="measure such a program before and after the upgrade; for PostgreSQL reserve huge pages (huge_pages = on)",
        reference="Graviton guide, Linux kernel; Linux kernel mailing list, April 2026",
        checked="2026-11-23",
        expires="2027-11-30",
        kernel=Versions((7, 0)),
    ),
)


def about(
    kernel: Optional[Version], ena: Optional[Version], host_class: Optional[str], entries: Tuple[Advisory, ...]
) -> Tuple[Advisory, ...]:
    """The entries about a host. What isn't known of it, or is no version of AWS's driver, is None and matches none."""
    return tuple(
        entry
        for entry in entries
        if _holds(entry.ena, ena) and _holds(entry.kernel, kernel) and host_class in (entry.classes or (host_class,))
    )


def _holds(versions: Optional[Versions], version: Optional[Version]) -> bool:
    return versions is None or (version is not None and versions.include(version))


def _padded(version: Version, length: int) -> Version:
    return (*version, *[0] * (length - len(version)))


def end_of_life(name: str, version: str) -> Optional[str]:
    """The last day of public support, 2029-06-30; None when it isn't known."""
    return END_OF_LIFE.get((name, version)) or END_OF_LIFE.get((name, version.split(".", maxsplit=1)[0]))
