# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""EBS's counters: only disks with EBS's model are queried, and only EBS's own log page is accepted.

No EBS device is at hand. The page is laid out by hand, as nvme-cli's amzn plugin prints it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Dict, Optional

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts import ebs, ioctl
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host

EBS = "Amazon Elastic Block Store              \n"
# magic, reserved, reads, writes, bytes read, bytes written, their two times, then the four limits
PAGE = bytes.fromhex(
    "10b5233c 00000000 0100000000000000 0200000000000000 0300000000000000 0400000000000000"
    "0500000000000000 0600000000000000 0700000000000000 0800000000000000 4016400000000000 0a00000000000000"
)


class Nvme(Host):
    """A host whose controllers answer with the pages given."""

    def __init__(self, root: Path, pages: Dict[str, Optional[bytes]], model: str = EBS) -> None:
        super().__init__(str(root))
        self._pages = pages
        for name in pages:
            folder = root / "sys/class/nvme" / name
            folder.mkdir(parents=True)
            (folder / "model").write_text(model)

    def nvme_log(self, controller: str, page: int, size: int) -> Optional[bytes]:
        """The page, cut to the size asked for."""
        assert (page, size) == (0xD0, 4096)
        return self._pages[controller]


def test_the_four_limits_in_microseconds(tmp_path: Path) -> None:
    host = Nvme(tmp_path, {"nvme10": PAGE.ljust(4096, b"\0"), "nvme2": PAGE})
    first, second = ebs.observe(host).as_dict()["exceeded"]
    assert (first["device"], second["device"]) == ("nvme2n1", "nvme10n1")
    assert first == {
        "device": "nvme2n1",
        "volume_iops_us": 7,
        "volume_throughput_us": 8,
        "instance_iops_us": 4200000,
        "instance_throughput_us": 10,
    }


@pytest.mark.parametrize(
    "page", [None, b"", PAGE[:-1], b"\0" * 4096, b"\xff" * 4096], ids=["none", "empty", "short", "zeros", "ones"]
)
def test_a_log_page_of_another_device_is_ignored(tmp_path: Path, page: Optional[bytes]) -> None:
    assert ebs.observe(Nvme(tmp_path, {"nvme0": page})).exceeded == ()


def test_only_disks_with_the_model_of_ebs_are_queried(tmp_path: Path) -> None:
    host = Nvme(tmp_path, {"nvme0": PAGE}, model="Amazon EC2 NVMe Instance Storage\n")
    assert ebs.observe(host).exceeded == ()


def test_the_command_is_laid_out_as_the_kernel_reads_it(tmp_path: Path) -> None:
    # struct nvme_admin_cmd of <linux/nvme_ioctl.h>; no controller: the kernel is never asked.
    with pytest.raises(OSError, match="No such file"):
        ioctl.nvme_log(os.path.relpath(tmp_path / "none", "/dev"), 0xD0, 4096)
    assert ioctl.nvme_command(0xD0, 4096, 0x1122334455667788).hex(" ", -4) == (
        "02000000 01000000 00000000 00000000 00000000 00000000 88776655 44332211"
        " 00000000 00100000 d000ff03 00000000 00000000 00000000 00000000 00000000 00000000 00000000"
    )
