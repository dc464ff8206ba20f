# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What differs between a host of x86_64 and one of arm64, as data."""

from __future__ import annotations

import dataclasses
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class Architecture:
    """`name` is Debian's word for it, `cpu` the kernel's and QEMU's."""

    name: str
    cpu: str
    serial: str  # the console that the kernel writes to
    machine: str  # QEMU's machine and processor while the boot loader is installed
    processor: str
    firmware: Path | None  # other than QEMU's own
    esp_mib: int  # the partition that UEFI boots from; 0 with a BIOS
    # A BIOS numbers its PCI slots, which makes the first NIC ens5; else a PCIe port with that number must.
    pcie_ports: bool
    tools: dict[str, str]  # program → package that only this architecture needs
    files: dict[Path, str]

    @property
    def qemu(self) -> str:
        """QEMU's program."""
        return f"qemu-system-{self.cpu}"


_UEFI = Path("/usr/share/qemu-efi-aarch64/QEMU_EFI.fd")
_KNOWN = (
    Architecture(
        name="amd64",
        cpu="x86_64",
        serial="ttyS0",
        machine="pc",
        processor="max",
        firmware=None,
        esp_mib=0,
        pcie_ports=False,
        tools={"qemu-system-x86_64": "qemu-system-x86"},
        files={Path("/usr/share/seabios/bios-256k.bin"): "seabios", Path("/usr/share/ovmf/OVMF.fd"): "ovmf"},
    ),
    Architecture(
        name="arm64",
        cpu="aarch64",
        serial="ttyAMA0",
        machine="virt,gic-version=3",
        # Emulated, pointer authentication costs a kernel that has it much: this processor lacks it.
        processor="neoverse-n1",
        firmware=_UEFI,
        esp_mib=64,
        pcie_ports=True,
        tools={"qemu-system-aarch64": "qemu-system-arm", "qemu-aarch64-static": "qemu-user-static"},
        files={_UEFI: "qemu-efi-aarch64"},
    ),
)
BY_NAME = {known.name: known for known in _KNOWN}
AMD64 = BY_NAME["amd64"]
