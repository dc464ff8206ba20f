# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""block_storage on a real kernel and a real udev, with disks that are attached while the host runs.

QEMU's NVMe controller can't be given a model, so the host's own kernel offers namespaces over TCP (nvmet) and
attaches them itself: its NVMe driver then reads the model that EC2's controllers have. virtio
disks come by QEMU's monitor, and so does an NVMe disk that isn't one of EC2's.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.host import Host, instance
from tests.support.lab import ansible

EBS, STORE = "Amazon Elastic Block Store", "Amazon EC2 NVMe Instance Storage"
RULES = "/etc/udev/rules.d/90-nearmetal-block_storage.rules"
# CONFIG_HZ is 250: 2^32 - 2 ticks of 4 ms, cut to 32 bits.
LONGEST = "4294967288"
TARGET = """
modprobe -a nvmet-tcp nvme-tcp null_blk
mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
mkdir /sys/kernel/config/nvmet/ports/1
cd /sys/kernel/config/nvmet/ports/1
echo tcp > addr_trtype; echo ipv4 > addr_adrfam; echo 127.0.0.1 > addr_traddr; echo 4420 > addr_trsvcid
"""
NAMESPACE = """
disk=/sys/kernel/config/nvmet/subsystems/{name}
mkdir $disk $disk/namespaces/1
echo 1 > $disk/attr_allow_any_host
echo '{model}' > $disk/attr_model
echo /dev/nullb0 > $disk/namespaces/1/device_path
echo 1 > $disk/namespaces/1/enable
ln -s $disk /sys/kernel/config/nvmet/ports/1/subsystems/
echo transport=tcp,traddr=127.0.0.1,trsvcid=4420,nqn={name} > /dev/nvme-fabrics
udevadm settle
"""
WANTED = {
    "io_timeout": "aws",
    "scheduler": "mq-deadline",
    "disks": [
        {"kind": "instance_store", "scheduler": "none", "nomerges": 2},
        {"kind": "virtio", "nr_requests": 64},
        {"mount": "/", "read_ahead_kb": 2048, "max_sectors_kb": 256, "write_cache": "write_through"},
    ],
}


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    monkeypatch.setenv("NEARMETAL_LAB_INSTANCES", str(tmp_path / "instances"))
    with instance.running("storage", "storage") as running:
        yield running


def changes(host: Host, folder: Path, options: dict[str, object]) -> list[str]:
    """Run the module on the host and return its changes."""
    result = ansible.module("block_storage", host, folder, options)
    return [f"{action['what']} {action['where']} {action['after']}" for action in result["actions"]]


def attach(host: Host, devices: dict[str, str]) -> None:
    """Disks of 64 MiB by QEMU's monitor: the name that each will have → its device."""
    with host.monitor() as monitor:
        for name, device in devices.items():
            monitor.human(f"drive_add 0 if=none,id={name},driver=null-co,size=64M,read-zeroes=on")
            monitor.human(f"device_add {device},id={name},drive={name}")
    present = f"cd /sys/block && ls {' '.join(devices)} > /dev/null 2>&1 && udevadm settle && echo yes; true"
    assert host.wait(lambda: host.run(present) == "yes\n", 120.0, 0.5), f"{devices} never appeared"


def settings(host: Host) -> dict[str, str]:
    """Disk/file → value, of all disks that have hardware below them."""
    names = "io_timeout,scheduler,read_ahead_kb,nr_requests,nomerges,rq_affinity,max_sectors_kb,write_cache"
    lines = host.run(f"cd /sys/block; bash -c 'grep . {{nvme*,vd*}}/queue/{{{names}}} 2>/dev/null'; true").splitlines()
    return {
        path.replace("/queue", ""): value.strip() for path, _colon, value in (line.partition(":") for line in lines)
    }


def test_each_kind_of_disk_gets_its_own_value_also_when_attached_later(host: Host, tmp_path: Path) -> None:
    host.run(TARGET + NAMESPACE.format(name="vol1", model=EBS) + NAMESPACE.format(name="store1", model=STORE))
    before = settings(host)
    assert before["nvme0n1/io_timeout"] == before["nvme1n1/io_timeout"] == "30000"

    assert changes(host, tmp_path, WANTED)
    now = settings(host)
    assert [now[f"{disk}/io_timeout"] for disk in ("nvme0n1", "nvme1n1")] == [LONGEST, "90000"]
    assert now["nvme0n1/scheduler"] == "[mq-deadline] none"
    assert [now[f"nvme1n1/{name}"] for name in ("scheduler", "nomerges")] == ["[none] mq-deadline", "2"]
    assert [now[f"vda/{name}"] for name in ("nr_requests", "read_ahead_kb")] == ["64", "2048"]
    assert [before["vda/write_cache"], now["vda/write_cache"]] == ["write back", "write through"]
    assert now["vda/max_sectors_kb"] == "256" != before["vda/max_sectors_kb"]

    attach(host, {"vdb": "virtio-blk-pci", "nvme2n1": "nvme,serial=disk3"})
    host.run(NAMESPACE.format(name="vol2", model=EBS) + NAMESPACE.format(name="store2", model=STORE))
    now = settings(host)
    # QEMU's own NVMe disk has the name that an EBS volume would have.
    assert [now.get(f"nvme{number}n1/io_timeout") for number in (2, 3, 4)] == ["30000", LONGEST, "90000"]
    assert [now[f"nvme{number}n1/nomerges"] for number in (2, 3, 4)] == ["0", "0", "2"]
    assert [now[f"vdb/{name}"] for name in ("scheduler", "nr_requests")] == ["[mq-deadline] none", "64"]
    # Only the unit knows the disks below a mount point: each disk that is added starts it.
    log = host.run("journalctl -b -u systemd-udevd -u nearmetal.service --no-pager")
    assert "Started nearmetal.service" in log
    assert not [line for line in log.splitlines() if "udevd" in line and "failed" in line.lower()]
    resting = "systemctl stop nearmetal.timer; systemctl show -p ActiveState --value nearmetal.service"
    assert host.wait(lambda: host.run(resting).strip() in ("inactive", "failed"), 300.0, 1.0)
    assert changes(host, tmp_path, WANTED) == []

    assert changes(host, tmp_path, {"state": "restored"})
    after = settings(host)
    assert {path: after[path] for path in before} == before
    assert [after[f"nvme{number}n1/io_timeout"] for number in (2, 3, 4)] == ["30000"] * 3
    assert [after[f"vdb/{name}"] for name in ("scheduler", "nr_requests")] == [
        before[f"vda/{name}"] for name in ("scheduler", "nr_requests")
    ]
    assert host.run(f"ls -d {RULES} /var/lib/nearmetal /etc/systemd/system/nearmetal* 2>/dev/null; true") == ""
