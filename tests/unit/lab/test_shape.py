# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts as data: what a file may contain, and the error for anything else."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab import qemu, shape
from lab.error import LabError


def written(folder: Path, text: str, name: str = "mine.toml") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("name", shape.names())
def test_every_shape_that_we_ship_is_read(name: str) -> None:
    assert shape.load(name).cpus >= 1


def test_a_new_shape_says_only_how_it_differs(tmp_path: Path) -> None:
    loaded = shape.load(
        written(tmp_path, 'like = "default"\nabout = "mine"\nthreads = 1\nsystem.product = "c5.2xlarge"\n')
    )
    default = shape.load("default")
    assert (loaded.name, loaded.threads, loaded.cpus) == ("mine", 1, default.cpus // 2)
    assert loaded.smbios["system"] == {**default.smbios["system"], "product": "c5.2xlarge"}
    assert loaded.smbios["bios"] == default.smbios["bios"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('like = "default"\nabout = "x"\nsokets = 1\n', "sokets"),
        ('like = "default"\nabout = "x"\nsockets = "two"\n', "sockets must be a int"),
        ('like = "default"\nabout = "x"\nsockets = true\n', "sockets must be a int"),
        ('like = "default"\nabout = "x"\nnodes = 3\n', "don't divide into 3 nodes"),
        ('like = "default"\nabout = "x"\nmemory_mib = 1\n', "memory_mib 256 or more"),
        ('like = "default"\nabout = "x"\nnics = []\n', "nics must be 1 or more"),
        ('like = "default"\nabout = "x"\nnics = [1]\n', "nics must hold strings only"),
        ('like = "default"\nabout = "x"\nnics = ["e1000,bus=node2"]\n', "near node 2, and there are 2 nodes"),
        ('like = "default"\nabout = "x"\nimage = "minix"\n', "minix.toml"),
        (
            'like = "default"\nabout = "x"\nfirmware = "/no/such.fd"\n',
            "no firmware /no/such.fd; run: .*doctor --install",
        ),
        ('about = "x"\n', "image is missing"),
        ("about = [", "not TOML"),
    ],
)
def test_a_wrong_file_is_refused_by_name(tmp_path: Path, text: str, names: str) -> None:
    with pytest.raises(LabError, match=names):
        shape.load(written(tmp_path, text))


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(LabError, match=r"no host is called nope; known: .*default"):
        shape.load("nope")


def test_a_shape_cannot_be_like_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shape, "HOSTS", tmp_path)
    written(tmp_path, 'like = "b"\n', "a.toml")
    written(tmp_path, 'like = "a"\n', "b.toml")
    with pytest.raises(LabError, match="leads back"):
        shape.load("a")


def test_a_comma_in_a_string_of_the_firmware_stays_in_it(tmp_path: Path) -> None:
    loaded = shape.load(written(tmp_path, 'like = "default"\nabout = "x"\nsystem.product = "a,serial=b"\n'))
    arguments = qemu.command(loaded, "tcg")
    assert any("product=a,,serial=b" in argument for argument in arguments)


def test_addresses_are_loopback_only() -> None:
    for name in shape.names():
        networks = [argument for argument in qemu.command(shape.load(name), "tcg") if argument.startswith("user,")]
        assert networks
        assert all("restrict=on" in network for network in networks)
        assert "hostfwd=tcp:127.0.0.1:0-:22" in networks[0]


def test_the_first_nic_is_in_slot_5_whatever_the_firmware() -> None:
    bios, uefi = (" ".join(qemu.command(shape.load(name), "tcg")) for name in ("default", "arm64"))
    assert "-bios" not in bios
    assert "virtio-net-pci,netdev=net0,addr=0x5" in bios
    assert "-bios /usr/share/qemu-efi-aarch64/QEMU_EFI.fd" in uefi
    assert "pcie-root-port,id=port5,slot=5," in uefi
    assert "virtio-net-pci,netdev=net0,bus=port5" in uefi


def test_a_pcie_machine_has_its_nics_in_ports_that_say_their_slots() -> None:
    words = " ".join(qemu.command(shape.load("sriov"), "tcg"))
    assert "acpi-pci-hotplug-with-bridge-support=off" in words
    assert "pcie-root-port,id=port6,slot=6," in words
    assert "igb,netdev=net1,bus=port6" in words


def test_a_shape_may_start_by_another_firmware(tmp_path: Path) -> None:
    firmware = written(tmp_path, "any bytes", "uefi.fd")
    loaded = shape.load(written(tmp_path, f'like = "default"\nabout = "x"\nfirmware = "{firmware}"\n'))
    assert f"-bios {firmware}" in " ".join(qemu.command(loaded, "tcg"))


def test_an_unknown_architecture_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shape, "IMAGES", tmp_path)
    written(tmp_path, 'architecture = "mips"\n', "odd.toml")
    with pytest.raises(LabError, match="odd: architecture is amd64 or arm64, not mips"):
        shape.load(written(tmp_path, 'like = "default"\nabout = "x"\nimage = "odd"\n'))


def test_a_host_with_an_nvme_disk_is_not_saved(tmp_path: Path) -> None:
    disks = 'disks = [{device = "nvme,serial=vol1", size_mib = 64}]\n'
    loaded = shape.load(written(tmp_path, f'like = "default"\nabout = "x"\n{disks}'))
    assert not loaded.can_be_saved
    assert shape.load("default").can_be_saved
