# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A raw device is measured only if nothing is on it and nobody uses it, and written only if its id is spelled out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.host import disks, raw_device
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.tools.registry import BENCHMARKS, options_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host

GIVEN = "/dev/nvme1n1"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A host with an empty disk of 1,000 MiB."""
    folder = tmp_path / "sys/block/nvme1n1"
    for name in ("holders", "queue", "device"):
        (folder / name).mkdir(parents=True)
    (folder / "size").write_text("2048000\n")
    (folder / "dev").write_text("259:4\n")
    (folder / "wwid").write_text("nvme.1d0f-766f6c\n")
    (folder / "device/model").write_text("Amazon Elastic Block Store\n")
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text("24 1 259:1 / / rw - ext4 /dev/nvme0n1p1 rw\n")
    (tmp_path / "proc/swaps").write_text("Filename Type Size Used Priority\n")
    return tmp_path


def require(root: Path, **options: Any) -> None:
    host = Host(str(root))
    raw_device.require_unused(host, GIVEN, "nvme1n1")
    raw_device.require_size(host, GIVEN, "nvme1n1", options.get("size_mib", 1000))
    raw_device.require_consent(host, GIVEN, "nvme1n1", {"shape": "random_write", **options})


def test_a_free_disk_is_written_if_its_id_is_spelled_out(root: Path) -> None:
    require(root, write_device="wwid=nvme.1d0f-766f6c")


@pytest.mark.parametrize(
    ("path", "text", "options", "words"),
    [
        ("sys/block/nvme1n1/nvme1n1p1/partition", "1\n", {}, "it has partitions (nvme1n1p1)"),
        ("sys/block/nvme1n1/holders/dm-0/dev", "252:0\n", {}, "dm-0 is built on it"),
        ("proc/self/mountinfo", "30 1 259:4 / /data rw - xfs /dev/x rw\n", {}, "it is mounted on /data"),
        ("proc/swaps", "Filename\n/dev/nvme1n1 partition 1 0 -2\n", {}, "the host swaps to it"),
        ("none", "", {"size_mib": 1001}, "it has 1000 MiB, and size_mib is 1001: set at most 1000"),
        (
            "none",
            "",
            {},
            "the shape random_write overwrites what is on it; if you want that, set write_device to its id",
        ),
        ("none", "", {"write_device": "wwid=nvme.1d0f-0"}, "wwid=nvme.1d0f-766f6c (now 'wwid=nvme.1d0f-0')"),
        (
            "sys/block/nvme1n1/wwid",
            "",
            {"write_device": ""},
            "it has no id by which a shape that writes, such as random_wri",
        ),
    ],
)
def test_a_disk_in_use_or_of_another_id_is_refused(
    path: str, text: str, options: Dict[str, Any], words: str, root: Path
) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)
    with pytest.raises(NearmetalError) as raised:
        require(root, **options)
    assert str(raised.value).startswith("device '/dev/nvme1n1' can't be measured: ")
    assert words in str(raised.value)


def _dos() -> bytes:
    entry = bytes([0, 0, 2, 0, 0x83, 0, 0, 0]) + (2048).to_bytes(4, "little") + (2048).to_bytes(4, "little")
    return bytes(446) + entry + bytes(48) + b"\x55\xaa"


def _ext4() -> bytes:
    block = bytearray(2048)
    block[1024:1032] = (64).to_bytes(4, "little") + (4096).to_bytes(4, "little")
    block[1024 + 24 : 1024 + 28] = (2).to_bytes(4, "little")
    block[1024 + 56 : 1024 + 58] = b"\x53\xef"
    block[1024 + 76] = 1
    return bytes(block)


@pytest.mark.parametrize(
    ("content", "found"), [(_dos(), "dos"), (_ext4(), "ext2"), (b"LUKS\xba\xbe\x00\x02" + bytes(8192), "crypto_LUKS")]
)
def test_what_is_on_a_device_is_found(content: bytes, found: str, tmp_path: Path) -> None:
    path = tmp_path / "device"
    path.write_bytes(content + bytes(8 * 1024 * 1024))
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with pytest.raises(NearmetalError, match=f"a partition table or the like, .*: blkid finds {found}$"):
            raw_device.require_empty("/dev/x", f"/dev/fd/{descriptor}", descriptor)
        path.write_bytes(bytes(8 * 1024 * 1024))
        raw_device.require_empty("/dev/x", f"/dev/fd/{descriptor}", descriptor)
    finally:
        os.close(descriptor)


@pytest.mark.parametrize(
    ("path", "words"), [("absent", "No such file or directory"), ("file", "it isn't a block device")]
)
def test_what_is_no_device_is_refused(path: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    options = {"device": f"{tmp_path}/{path}", "shape": "random_read", "size_mib": 16}
    with pytest.raises(NearmetalError, match=f"can't be measured: {words}$"), raw_device.claimed(Host(), options):
        pass


def test_without_a_device_the_options_stay() -> None:
    with raw_device.claimed(Host(), {"shape": "random_read"}) as settled:
        assert settled == {"shape": "random_read"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"device": "nvme1n1"},
            "benchmark.options of disk has device: 'nvme1n1'; it must be the path of a block device, ",
        ),
        ({"device": "/dev/../etc/x"}, "benchmark.options of disk has device: '/dev/../etc/x'; it must be the path "),
        (
            {"device": "/dev/sdb", "directory": "/data"},
            "benchmark.options of disk has device and directory: it measures",
        ),
        ({"write_device": "wwid=1"}, "benchmark.options of disk has write_device without device: it is the id of "),
    ],
)
def test_options_of_a_device_that_do_not_fit_are_refused(given: Dict[str, Any], words: str) -> None:
    with pytest.raises(NearmetalError) as raised:
        options_of("disk", given)
    assert str(raised.value).startswith(words)


def test_a_shape_that_only_reads_can_t_write() -> None:
    for shape, reads in (("random_read", True), ("random_write", False), ("mixed_90", False), ("sql", True)):
        options = options_of("disk", {"device": "/dev/disk/by-path/pci-0:1", "shape": shape})
        (command,) = BENCHMARKS["disk"].run(options, "/folder").commands
        assert ("--readonly" in command.argv) is reads
        assert "--filename=/dev/disk/by-path/pci-0\\:1" in command.argv
        assert command.as_root
        assert BENCHMARKS["disk"].limits(options).disk_mib == 0


def test_ebs_s_counters_are_those_of_the_disks_that_were_loaded(root: Path) -> None:
    before = {"nvme1n1": {"volume_iops_us": 1_000_000}, "nvme2n1": {"volume_iops_us": 0}}
    after = {"nvme1n1": {"volume_iops_us": 3_500_400}, "nvme2n1": {"volume_iops_us": 9_000_000}}
    found = disks.loaded(Host(str(root)), ["nvme1n1"], before, after)
    assert found == {"kinds": ["ebs"], "held_back_ms": {"volume_iops": 2500}}
    assert disks.loaded(Host(str(root)), ["gone"], before, after) == {"kinds": []}
