# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""block_storage's real main() on a fake kernel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.modules import block_storage, restore

from tests.support.boot_trees import debian
from tests.support.fake_kernel import FakeKernel, everything
from tests.support.hosts import files_of
from tests.support.kernel.disks import EBS, STORE, disk_files

Call = Callable[..., Dict[str, Any]]
RULES = "/etc/udev/rules.d/90-nearmetal-block_storage.rules"
NEW_BOOT = "99999999-0000-0000-0000-000000000000"
EVERYTHING: Dict[str, Any] = {
    "io_timeout": "aws",
    "scheduler": "mq-deadline",
    "disks": [
        {"kind": "instance_store", "scheduler": "none", "nomerges": 2, "rq_affinity": 2},
        {"kind": "ebs", "nr_requests": 512, "read_ahead_kb": 1024},
    ],
}


@pytest.fixture
def host(tmp_path: Path) -> FakeKernel:
    """A host with an EBS volume, and two instance stores in an array that is mounted at /data."""
    return FakeKernel(tmp_path, files_of("nitro_big"))


def read(host: FakeKernel, name: str, attribute: str) -> str:
    text = (Path(host.root) / f"sys/block/{name}/queue/{attribute}").read_text().strip()
    return text[text.index("[") + 1 : text.index("]")] if "[" in text else text


def put(host: FakeKernel, name: str, attribute: str, value: str) -> None:
    host.write_value(f"/sys/block/{name}/queue/{attribute}", f"{value}\n")
    host.written.clear()


def test_check_apply_check_apply_restore(host: FakeKernel, call: Call) -> None:
    before = everything(host)
    checked = call(block_storage.main, host, check=True, **EVERYTHING)
    assert everything(host) == before
    applied = call(block_storage.main, host, **EVERYTHING)
    assert not applied.get("failed"), applied["msg"]
    results = [checked, applied] + [
        call(block_storage.main, host, check=check, **EVERYTHING) for check in (True, False)
    ]
    assert [result["changed"] for result in results] == [True, True, False, False]
    assert checked["diff"] == applied["diff"]
    # 4294967295 ms become as many ticks of 4 ms as 32 bits hold.
    assert [read(host, disk, "io_timeout") for disk in ("nvme0n1", "nvme1n1")] == ["4294967288", "90000"]
    assert [read(host, disk, "scheduler") for disk in ("nvme0n1", "nvme2n1")] == ["mq-deadline", "none"]
    assert [read(host, disk, "nr_requests") for disk in ("nvme0n1", "nvme2n1")] == ["512", "1023"]
    assert [read(host, disk, "nomerges") for disk in ("nvme0n1", "nvme2n1")] == ["0", "2"]
    assert read(host, "nvme0n1", "read_ahead_kb") == "1024"
    assert "udevadm control --reload" in host.commands
    assert not applied["reboot_required"]
    assert call(restore.main, host)["changed"]
    assert everything(host) == before


@pytest.mark.parametrize("hz", [100, 250, 300, 1000])
@pytest.mark.parametrize("original", ["30000", "5", "1234", "1235"])
def test_whatever_the_kernel_s_ticks_are(host: FakeKernel, call: Call, hz: int, original: str) -> None:
    host.disks.hz = hz
    for disk in ("nvme0n1", "nvme1n1"):
        put(host, disk, "io_timeout", original)
    before = everything(host)
    for timeout in ("aws", "1001"):
        assert call(block_storage.main, host, io_timeout=timeout)["changed"]
        assert not call(block_storage.main, host, io_timeout=timeout)["changed"]
    assert call(restore.main, host)["changed"]
    assert everything(host) == before


def test_the_timeout_of_aws_s_kernel_argument_is_as_wanted(host: FakeKernel, call: Call) -> None:
    """An Amazon Linux shows this number: 4294967295 s in ticks, cut to 32 bits."""
    (Path(host.root) / "sys/block/nvme0n1/queue/io_timeout").write_text("4294966296\n")
    applied = call(block_storage.main, host, disks=[{"kind": "ebs", "io_timeout": "aws"}], persist=False)
    assert not [action for action in applied["actions"] if action["what"] == "block.io_timeout"]


def test_a_disk_that_is_attached_later_gets_the_same_from_udev(host: FakeKernel, call: Call) -> None:
    call(block_storage.main, host, **EVERYTHING)
    host.disks.attach({"name": "nvme3n1", "device": "0000:00:1d.0", "model": STORE})
    host.disks.attach({"name": "nvme4n1", "device": "0000:00:1c.0", "model": EBS})
    assert [read(host, disk, "io_timeout") for disk in ("nvme3n1", "nvme4n1")] == ["90000", "4294967288"]
    assert [read(host, disk, "scheduler") for disk in ("nvme3n1", "nvme4n1")] == ["none", "mq-deadline"]
    assert [read(host, disk, "nr_requests") for disk in ("nvme3n1", "nvme4n1")] == ["1023", "512"]
    assert not call(block_storage.main, host, **EVERYTHING)["changed"]
    # The event of a write doesn't undo a value that somebody sets later.
    put(host, "nvme3n1", "nomerges", "0")
    host.disks.udev("nvme3n1", "change")
    assert read(host, "nvme3n1", "nomerges") == "0"
    # Restore takes back the values that udev set, although no run wrote them.
    restored = call(restore.main, host)
    assert not restored.get("failed"), restored["msg"]
    assert [read(host, disk, "io_timeout") for disk in ("nvme3n1", "nvme4n1")] == ["30000", "30000"]
    assert [read(host, "nvme4n1", name) for name in ("scheduler", "nr_requests")] == ["none", "1023"]
    assert [read(host, "nvme3n1", name) for name in ("nomerges", "rq_affinity")] == ["0", "1"]
    assert not host.exists("/var/lib/nearmetal")


@pytest.mark.parametrize("tags", ["1023", "128"], ids=["deep", "shallow"])
def test_requests_of_a_disk_that_is_attached_later_go_back_with_its_scheduler(
    host: FakeKernel, call: Call, tags: str
) -> None:
    """With a scheduler the kernel has up to 256 requests, which a shallow queue without a scheduler refuses."""
    call(block_storage.main, host, scheduler="mq-deadline")
    queue = {"nr_requests": tags, "nr_tags": tags}
    host.disks.attach({"name": "nvme4n1", "device": "0000:00:1c.0", "model": EBS, "queue": queue})
    assert [read(host, "nvme4n1", name) for name in ("scheduler", "nr_requests")] == ["mq-deadline", "256"]
    call(block_storage.main, host, scheduler="mq-deadline")
    restored = call(restore.main, host)
    assert not restored.get("failed"), restored["msg"]
    assert [read(host, "nvme4n1", name) for name in ("scheduler", "nr_requests")] == ["none", tags]
    assert not host.exists("/var/lib/nearmetal")


def test_requests_that_somebody_set_on_a_disk_attached_later_stay(host: FakeKernel, call: Call) -> None:
    call(block_storage.main, host, nr_requests=64)
    host.disks.attach({"name": "nvme4n1", "device": "0000:00:1c.0", "model": EBS})
    assert read(host, "nvme4n1", "nr_requests") == "64"
    call(block_storage.main, host, scheduler="mq-deadline", persist=False)
    host.write_value("/sys/block/nvme4n1/queue/nr_requests", "300")
    call(restore.main, host)
    assert [read(host, "nvme4n1", name) for name in ("scheduler", "nr_requests")] == ["none", "300"]


@pytest.mark.parametrize(
    ("option", "value"), [("nr_requests", 100), ("read_ahead_kb", 4096), ("scheduler", "mq-deadline")]
)
def test_what_somebody_had_set_to_the_same_stays_after_a_restore(
    host: FakeKernel, call: Call, option: str, value: Any
) -> None:
    """The udev rule seemed to have set it, so that the restore gave it the kernel's own value."""
    host.write_value(f"/sys/block/nvme1n1/queue/{option}", str(value))
    done = call(block_storage.main, host, **{option: value})
    assert not done.get("failed"), done["msg"]
    assert not call(block_storage.main, host, **{option: value})["changed"]
    assert not call(restore.main, host).get("failed")
    assert read(host, "nvme1n1", option) == str(value)
    assert not host.exists("/var/lib/nearmetal")


def test_a_detached_disk_stops_no_run(host: FakeKernel, call: Call) -> None:
    call(block_storage.main, host, io_timeout="aws", persist=False)
    host.disks.detach("nvme2n1")
    again = call(block_storage.main, host, io_timeout="aws", persist=False)
    assert not again.get("failed"), again["msg"]
    assert not again["changed"]
    restored = call(restore.main, host)
    assert not restored.get("failed"), restored["msg"]
    assert "somebody" not in json.dumps(restored)
    assert read(host, "nvme1n1", "io_timeout") == "30000"


def test_a_disk_that_is_no_longer_named_is_taken_back_alone(host: FakeKernel, call: Call) -> None:
    call(block_storage.main, host, nomerges=2)
    applied = call(block_storage.main, host, disks=[{"kind": "ebs", "nomerges": 2}])
    assert applied["changed"]
    assert [read(host, disk, "nomerges") for disk in ("nvme0n1", "nvme1n1", "nvme2n1")] == ["2", "0", "0"]


def test_a_reboot_keeps_the_value_and_restore_takes_it_back(
    host: FakeKernel, call: Call, tmp_path_factory: pytest.TempPathFactory
) -> None:
    untouched = FakeKernel(tmp_path_factory.mktemp("untouched"), files_of("nitro_big"))
    call(block_storage.main, host, **EVERYTHING)
    for kernel in (host, untouched):
        kernel.reboot(NEW_BOOT)
    assert read(host, "nvme1n1", "nomerges") == "2"
    assert not call(block_storage.main, host, **EVERYTHING)["changed"]
    # The originals belong to an earlier boot; the kernel's own values of a disk need no reboot.
    restored = call(restore.main, host)
    assert not restored["reboot_required"]
    assert not host.exists(RULES)
    assert everything(host) == everything(untouched)


def test_the_number_of_requests_that_came_with_a_scheduler_at_boot_goes_with_it(host: FakeKernel, call: Call) -> None:
    before = read(host, "nvme0n1", "nr_requests")
    call(block_storage.main, host, nr_requests=512)
    call(block_storage.main, host, scheduler="mq-deadline")
    assert read(host, "nvme0n1", "nr_requests") == before
    host.reboot(NEW_BOOT)
    assert read(host, "nvme0n1", "nr_requests") == "256", "the kernel chooses it for the scheduler that our rule sets"
    assert not call(restore.main, host)["reboot_required"]
    assert [read(host, "nvme0n1", name) for name in ("scheduler", "nr_requests")] == ["none", before]


def test_the_disks_below_a_mount_point(host: FakeKernel, call: Call) -> None:
    wanted = {"disks": [{"mount": "/data", "read_ahead_kb": 4096, "nomerges": 2}]}
    applied = call(block_storage.main, host, **wanted)
    assert not applied.get("failed"), applied["msg"]
    assert [read(host, disk, "read_ahead_kb") for disk in ("md0", "nvme1n1", "nvme2n1")] == ["4096"] * 3
    assert [read(host, disk, "nomerges") for disk in ("nvme1n1", "nvme2n1", "nvme0n1", "md0")] == ["2", "2", "0", "0"]
    # Which disks these are is looked up at each boot: the unit does it, no rule.
    assert host.exists("/etc/systemd/system/nearmetal.service")
    assert not host.exists(RULES)
    assert not call(block_storage.main, host, **wanted)["changed"]


def test_more_requests_than_the_original_scheduler_allows_and_back(host: FakeKernel, call: Call) -> None:
    """Restore sets the scheduler first too, because so many requests need a scheduler."""
    put(host, "nvme0n1", "scheduler", "mq-deadline")
    put(host, "nvme0n1", "nr_requests", "2048")
    before = everything(host)
    wanted = {"disks": [{"kind": "ebs", "scheduler": "none", "nr_requests": 64}]}
    assert call(block_storage.main, host, **wanted)["changed"]
    assert [read(host, "nvme0n1", name) for name in ("scheduler", "nr_requests")] == ["none", "64"]
    restored = call(restore.main, host)
    assert not restored.get("failed"), restored["msg"]
    assert everything(host) == before


def test_a_number_of_requests_that_somebody_chose_survives_the_scheduler(host: FakeKernel, call: Call) -> None:
    put(host, "nvme0n1", "nr_requests", "100")
    call(block_storage.main, host, disks=[{"kind": "ebs", "scheduler": "mq-deadline"}])
    assert read(host, "nvme0n1", "nr_requests") == "100"
    call(restore.main, host)
    assert [read(host, "nvme0n1", name) for name in ("scheduler", "nr_requests")] == ["none", "100"]


def test_the_right_number_of_requests_is_right_under_a_new_scheduler_too(host: FakeKernel, call: Call) -> None:
    wanted = {"disks": [{"kind": "ebs", "scheduler": "mq-deadline", "nr_requests": 1023}]}
    call(block_storage.main, host, **wanted)
    assert [read(host, "nvme0n1", name) for name in ("scheduler", "nr_requests")] == ["mq-deadline", "1023"]
    assert not call(block_storage.main, host, **wanted)["changed"]


def test_read_ahead_is_cut_to_pages(host: FakeKernel, call: Call) -> None:
    host.disks.page_kib = 64
    assert call(block_storage.main, host, read_ahead_kb=1000)["changed"]
    assert read(host, "nvme0n1", "read_ahead_kb") == "960"
    assert not call(block_storage.main, host, read_ahead_kb=1000)["changed"]


def test_a_scheduler_that_is_a_module_is_loaded_by_its_name(host: FakeKernel, call: Call) -> None:
    release = (Path(host.root) / "proc/sys/kernel/osrelease").read_text().strip()
    folder = Path(host.root) / f"lib/modules/{release}/kernel/block"
    folder.mkdir(parents=True)
    (folder / "kyber-iosched.ko.xz").touch()
    assert call(block_storage.main, host, scheduler="kyber")["changed"]
    assert read(host, "nvme0n1", "scheduler") == "kyber"


@pytest.mark.parametrize(
    ("attribute", "mood"), [("io_timeout", "EINVAL"), ("nomerges", "ignores"), ("scheduler", "late")]
)
def test_a_value_that_the_kernel_refuses_brings_all_back(
    host: FakeKernel, call: Call, attribute: str, mood: str
) -> None:
    before = everything(host)
    host.moods[f"/sys/block/nvme2n1/queue/{attribute}"] = mood
    failed = call(block_storage.main, host, io_timeout="aws", nomerges=2, scheduler="mq-deadline")
    assert failed["failed"]
    assert "taken back" in failed["msg"]
    assert everything(host) == before


def test_a_file_that_the_kernel_shows_read_only_is_unchangeable(host: FakeKernel, call: Call) -> None:
    (Path(host.root) / "sys/block/nvme1n1/queue/nomerges").chmod(0o444)
    applied = call(block_storage.main, host, nomerges=2)
    (refused,) = [finding for finding in applied["findings"] if finding["status"] == "unchangeable"]
    assert refused["reason"].startswith("nvme1n1: ")
    assert [read(host, disk, "nomerges") for disk in ("nvme0n1", "nvme1n1", "nvme2n1")] == ["2", "0", "2"]


def test_28_volumes_stay_small(tmp_path: Path, call: Call) -> None:
    disks = [{"name": f"nvme{n}n1", "device": f"0000:00:{n:02x}.0", "model": EBS} for n in range(28)]
    host = FakeKernel(tmp_path, {**files_of("metal_amd"), **disk_files(disks)})
    applied = call(block_storage.main, host, io_timeout="aws", scheduler="mq-deadline", nr_requests=64, nomerges=2)
    assert len([action for action in applied["actions"] if action["where"].endswith("/n1")]) == 4 * 28
    assert len(json.dumps(applied)) < 65536


def test_kernel_arguments_there_and_back(tmp_path: Path, call: Call) -> None:
    host = debian(tmp_path)
    # Its image has the longest time there; ours comes after it.
    wanted = {"io_timeout": "600001", "method": "boot"}
    applied = call(block_storage.main, host, **wanted)
    assert applied["reboot_required"]
    assert host.boot().endswith(" nvme_core.io_timeout=601")
    assert not call(block_storage.main, host, **wanted)["changed"]
    assert read(host, "nvme0n1", "io_timeout") == "30000"
    call(block_storage.main, host, io_timeout="600001", persist=False)
    assert "io_timeout=601" not in host.boot()
    assert read(host, "nvme0n1", "io_timeout") == "600004"
    call(restore.main, host)
    assert read(host, "nvme0n1", "io_timeout") == "30000"


def test_an_argument_that_the_image_brought_is_as_wanted(tmp_path: Path, call: Call) -> None:
    applied = call(block_storage.main, debian(tmp_path), io_timeout="aws", method="boot")
    assert not applied["reboot_required"]
    statuses = [finding["status"] for finding in applied["findings"] if finding["knob"] == "method"]
    assert statuses == ["ok", "advice"]


def test_a_knob_that_tuned_sets_is_owned_by_tuned(tmp_path: Path, call: Call) -> None:
    """RHEL's default profile reads ahead; the last writer wins, so only one may write."""
    files = {
        "/sys/fs/cgroup/system.slice/tuned.service/cgroup.procs": "812\n",
        "/etc/tuned/active_profile": "throughput-performance\n",
        "/usr/lib/tuned/throughput-performance/tuned.conf": "[disk]\nreadahead=>4096\n",
    }
    host = FakeKernel(tmp_path, {**files_of("nitro_big"), **files})
    applied = call(block_storage.main, host, read_ahead_kb=1024, nomerges=2, persist=False)
    statuses = {finding["knob"]: finding["status"] for finding in applied["findings"]}
    assert statuses == {"read_ahead_kb": "refused", "nomerges": "changed"}
    assert read(host, "nvme0n1", "read_ahead_kb") == "128"
    call(block_storage.main, host, read_ahead_kb=1024, persist=False, owner_conflict="take_over")
    assert read(host, "nvme0n1", "read_ahead_kb") == "1024"


def test_a_named_disk_gets_its_write_cache_and_largest_request_at_each_boot_and_loses_them(
    host: FakeKernel, call: Call
) -> None:
    name = "nvme1n1"
    before = [read(host, name, attribute) for attribute in ("write_cache", "max_sectors_kb")]
    wanted = {"disks": [{"device": f"/dev/{name}", "write_cache": "write_through", "max_sectors_kb": 256}]}
    assert call(block_storage.main, host, **wanted)["changed"]
    assert [read(host, name, attribute) for attribute in ("write_cache", "max_sectors_kb")] == ["write through", "256"]
    assert not call(block_storage.main, host, **wanted)["changed"]
    assert read(host, "nvme2n1", "write_cache") == "write back"
    call(restore.main, host)
    assert [read(host, name, attribute) for attribute in ("write_cache", "max_sectors_kb")] == before
