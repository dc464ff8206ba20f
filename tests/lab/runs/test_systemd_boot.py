# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kernel argument in an entry of systemd-boot, from which a host with UEFI boots, and its way back to the byte.

bootctl and Debian's kernel-install write the entry; the kernel that was booted shows its arguments.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.host import Host, instance, planned
from tests.support.lab.ansible import module

UEFI = """\
like = "systemd_boot"
about = "the same disks, started by UEFI"
firmware = "/usr/share/ovmf/OVMF.fd"
"""
# What Debian's packages do where there is an EFI partition, and GRUB is removed afterwards.
INSTALL = """
set -eu
printf 'label: gpt\\ntype=uefi\\n' | sfdisk --quiet /dev/vdb
mkfs.vfat -n ESP /dev/vdb1
echo 'LABEL=ESP /boot/efi vfat umask=0077 0 0' >> /etc/fstab
mkdir -p /boot/efi
systemctl daemon-reload
mount /boot/efi
sed 's/^BOOT_IMAGE=[^ ]* //' /proc/cmdline > /etc/kernel/cmdline
bootctl --no-variables --make-entry-directory=yes install
version=$(uname -r)
kernel-install add "$version" "/boot/vmlinuz-$version" "/boot/initrd.img-$version"
DEBIAN_FRONTEND=noninteractive dpkg --purge grub-pc grub-pc-bin grub2-common grub-common
rm -rf /boot/grub /etc/default/grub.d
"""
# The seed changes at each boot.
FILES = "find /boot /etc /usr/local -type f -not -name random-seed -exec sha256sum {} + | sort -k2"
OPTIONS = "sed -n 's/^options *//p' /boot/efi/loader/entries/*.conf"


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """It started by GRUB, has systemd-boot on its second disk, and was started again by UEFI."""
    monkeypatch.setenv("NEARMETAL_LAB_INSTANCES", str(tmp_path / "instances"))
    shape = tmp_path / "uefi.toml"
    shape.write_text(UEFI, encoding="utf-8")
    with instance.running("systemd_boot", "entries") as started:
        started.run(INSTALL)
        by_uefi = instance.resized(started, str(shape), outlive=False)
        try:
            by_uefi.booted()
            yield by_uefi
        finally:
            by_uefi.end()


def test_an_argument_in_its_entry_is_booted_and_comes_back_to_the_byte(host: Host, tmp_path: Path) -> None:
    assert "systemd-boot" in host.run("bootctl status")
    before, untuned, options = host.run(FILES), host.run("cat /proc/cmdline").split(), host.run(OPTIONS).strip()
    assert "tsc=reliable" not in untuned

    assert module("clocksource", host, tmp_path, {"tsc_reliable": "enabled"})["reboot_required"]
    assert host.run(OPTIONS).strip() == f"{options} tsc=reliable"
    host.reboot()
    assert planned.wait(host) in ("inactive", "absent")
    assert host.run("cat /proc/cmdline").split() == [*untuned, "tsc=reliable"]

    module("restore", host, tmp_path, {})
    assert host.run(FILES) == before
    host.reboot()
    assert host.run("cat /proc/cmdline").split() == untuned
