# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""hugepages' real main() on a fake kernel, whose memory may be in pieces."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Callable, Dict, Optional

import pytest
import yaml
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.modules import hugepages, restore

from tests.support.boot_trees import debian
from tests.support.fake_kernel import FakeKernel, everything
from tests.support.hosts import files_of

Call = Callable[..., Dict[str, Any]]
NODE = "/sys/devices/system/node/node{}/hugepages/hugepages-2048kB/nr_hugepages"
GUIDE = (Path(__file__).resolve().parents[3] / "docs" / "hugepages.md").read_text("utf-8")
PAGES = [{"size": "2M", "count": 1024}]


@pytest.fixture
def host(tmp_path: Path) -> FakeKernel:
    """A metal instance of two nodes with 16 GiB."""
    return FakeKernel(tmp_path, files_of("metal"))


def reserved(host: FakeKernel) -> list[str]:
    return [(Path(host.root) / NODE.format(node).lstrip("/")).read_text().strip() for node in (0, 1)]


def test_check_apply_check_apply_restore(host: FakeKernel, call: Call) -> None:
    before = everything(host)
    wanted = {"thp": "never", "khugepaged_defrag": "disabled", "pages": PAGES}
    checked = call(hugepages.main, host, check=True, **wanted)
    assert everything(host) == before
    applied = call(hugepages.main, host, **wanted)
    results = [checked, applied] + [call(hugepages.main, host, check=check, **wanted) for check in (True, False)]
    assert [result["changed"] for result in results] == [True, True, False, False]
    assert checked["diff"] == applied["diff"]
    assert reserved(host) == ["512", "512"]
    assert call(restore.main, host)["changed"]
    assert everything(host) == before


def test_an_upgrade_of_the_distribution_changes_what_sap_asks_for(tmp_path: Path, call: Call) -> None:
    release, thp = "/etc/os-release", "/sys/kernel/mm/transparent_hugepage/enabled"
    sles = 'ID="sles"\nVERSION_ID="15.{}"\n'
    host = FakeKernel(tmp_path, files_of("metal", {release: sles.format(4), thp: "[always] madvise never\n"}))
    assert call(hugepages.main, host, thp="sap")["changed"]
    assert "[never]" in host.text(thp)
    (tmp_path / release.lstrip("/")).write_text(sles.format(5))
    host.reboot("99999999-0000-0000-0000-000000000000")
    assert "[always]" in host.text(thp), "no file has a value for another service pack"
    assert command(["reapply"], host) == 0
    assert "[madvise]" in host.text(thp)
    assert not call(hugepages.main, host, thp="sap")["changed"]


@pytest.mark.parametrize(
    ("name", "version", "asked"),
    [
        *(("rhel", version, "never") for version in ("7.9", "8.10", "9.0", "9.1")),
        *(("rhel", version, "madvise") for version in ("9.2", "9.10", "10", "10.1")),
        *(("sles", version, "never") for version in ("12.5", "15", "15.4")),
        *(("sles", version, "madvise") for version in ("15.5", "15.10", "16.0")),
        *(("sles_sap", version, asked) for version, asked in (("15.4", "never"), ("16.0", "madvise"))),
        *((name, version, None) for name, version in (("amzn", "2023"), ("rhel", ""), ("rhel", "nine"), ("ol", "9.4"))),
    ],
)
def test_what_sap_asks_for_on_each_distribution(
    name: str, version: str, asked: Optional[str], tmp_path: Path, call: Call
) -> None:
    release = {"/etc/os-release": f'ID="{name}"\nVERSION_ID="{version}"\n'}
    host = FakeKernel(tmp_path, files_of("metal", release))
    result = call(hugepages.main, host, check=True, thp="sap", method="runtime")
    if asked is None:
        assert "sap is for RHEL and SLES" in result["msg"]
    else:
        wanted = {finding["wanted"] for finding in result["findings"] if finding["knob"] == "thp"}
        assert wanted == {asked}


def test_memory_in_pieces_is_compacted_once(host: FakeKernel, call: Call) -> None:
    host.memory.room[NODE.format(1)] = 300
    host.memory.compacted[NODE.format(1)] = 600
    assert call(hugepages.main, host, pages=PAGES)["changed"]
    assert reserved(host) == ["512", "512"]
    assert host.memory.asked.count("compact") == 1


def test_a_partly_met_request_fails_by_name_and_is_taken_back(host: FakeKernel, call: Call) -> None:
    before = everything(host)
    host.memory.room[NODE.format(1)] = 300
    failed = call(hugepages.main, host, pages=PAGES)
    assert failed["failed"]
    for part in ("asked for 512", "on node1", "gave 300", "method: boot", "taken back"):
        assert part in failed["msg"]
    assert everything(host) == before
    assert host.memory.asked.count("compact") == 1


def test_pages_move_between_nodes_without_needing_both(host: FakeKernel, call: Call) -> None:
    call(hugepages.main, host, pages=[{"size": "2M", "count": 1024, "nodes": "0"}])
    host.memory.asked.clear()
    call(hugepages.main, host, pages=[{"size": "2M", "count": 1024, "nodes": "1"}])
    assert host.memory.asked == [NODE.format(0) + " 0", NODE.format(1) + " 1024"]
    call(restore.main, host)
    assert reserved(host) == ["0", "0"]


@pytest.mark.parametrize("order", [1, -1])
def test_sizes_that_give_memory_back_come_first(host: FakeKernel, call: Call, order: int) -> None:
    """5 GiB of node 0 are pages of 1 GiB and 1 GiB is free, so 4 GiB of smaller pages need their memory; and back."""
    large = NODE.format(0).replace("2048kB", "1048576kB")
    host.write_value(large, "5\n")
    host.memory.free["node0"] = 1024 * 1024
    before = everything(host)
    wanted = [{"size": "2M", "count": 2048, "nodes": "0"}, {"size": "1G", "count": 1, "nodes": "0"}][::order]
    applied = call(hugepages.main, host, pages=wanted)
    assert not applied.get("failed"), applied["msg"]
    assert reserved(host) == ["2048", "0"]
    assert host.line(large) == "1"
    back = call(restore.main, host)
    assert not back.get("failed"), back["msg"]
    assert everything(host) == before


def test_a_size_that_is_no_longer_wanted_is_taken_back(host: FakeKernel, call: Call) -> None:
    large = NODE.format(0).replace("2048kB", "1048576kB")
    host.write_value(large, "5\n")
    both = [*PAGES, {"size": "1G", "count": 1, "nodes": "0"}]
    options = {"group": "1000", "thp": "never", "method": "runtime"}
    call(hugepages.main, host, pages=both, **options)
    assert (reserved(host), host.line(large)) == (["512", "512"], "1")
    fewer = call(hugepages.main, host, pages=PAGES, **options)
    assert {action["knob"] for action in fewer["actions"]} == {"pages", "state"}, fewer["msg"]
    assert (reserved(host), host.line(large)) == (["512", "512"], "5")


def test_each_node_has_its_own_count(host: FakeKernel, call: Call) -> None:
    [example] = [yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```$", GUIDE, re.M | re.S)]
    wanted = {"pages": example["hugepages_pages"]}
    assert [call(hugepages.main, host, **wanted)["changed"] for _time in (1, 2)] == [True, False]
    assert reserved(host) == ["512", "1024"]
    call(restore.main, host)
    assert reserved(host) == ["0", "0"]


def test_pages_that_starve_the_host_are_refused_at_boot_too(host: FakeKernel, call: Call) -> None:
    """10,000 pages (AWS, 2017) are 19.5 GiB, this host has 16; at boot only the guard would stop them."""
    refused = call(hugepages.main, host, pages=[{"size": "2M", "count": 10000}], method="boot")
    assert [action["what"] for action in refused["actions"]] == ["wanted"], "it is kept that it was asked for"
    assert [finding["status"] for finding in refused["findings"]] == ["refused"]
    assert "19.5 GiB" in refused["findings"][0]["reason"]


def test_at_boot_and_back(tmp_path: Path, call: Call) -> None:
    host = debian(tmp_path)
    applied = call(hugepages.main, host, thp="never", pages=[{"size": "1G", "count": 2}], method="boot")
    assert applied["reboot_required"]
    line = host.boot()
    assert "transparent_hugepage=never" in line
    assert "hugepagesz=1G hugepages=2" in line
    call(hugepages.main, host, state="restored")
    assert "huge" not in host.boot()


def test_pages_of_our_argument_do_not_count_against_the_next_one(tmp_path: Path, call: Call) -> None:
    """10 of 16 GiB are pages of 1 GiB; pages of 2 MiB that replace them don't count in addition."""
    host = debian(tmp_path)
    call(hugepages.main, host, pages=[{"size": "1G", "count": 10}], method="boot")
    host.boot()
    for node in (0, 1):
        host.write_value(NODE.format(node).replace("2048kB", "1048576kB"), "5\n")
    other = call(hugepages.main, host, pages=[{"size": "2M", "count": 5120}], method="boot")
    assert {finding["status"] for finding in other["findings"]} == {"changed", "needs_reboot"}, other["findings"]
    assert "hugepagesz=2M hugepages=5120" in host.boot()


def test_pages_that_a_boot_did_not_reserve_are_reported(tmp_path: Path, call: Call) -> None:
    """The kernel boots with as many pages as it finds room for and goes on."""
    host = debian(tmp_path)
    wanted = {"pages": [{"size": "1G", "count": 2}], "method": "boot"}

    def pages() -> list[tuple[str, str]]:
        again = call(hugepages.main, host, **wanted)
        assert not again["changed"]
        assert not again["reboot_required"]
        return [(finding["status"], finding["reason"]) for finding in again["findings"] if finding["knob"] == "pages"]

    call(hugepages.main, host, **wanted)
    host.boot()
    node = "/sys/devices/system/node/node0/hugepages/hugepages-1048576kB/nr_hugepages"
    host.write_value(node, "1\n")
    [(status, reason)] = pages()
    assert status == "unchangeable"
    assert "has 1 of 2 pages of 1048576kB" in reason
    host.write_value(node, "2\n")
    assert pages() == []


def test_both_methods_leave_to_the_boot_what_only_a_boot_has(tmp_path: Path, call: Call) -> None:
    host = debian(tmp_path)
    wanted = [{"size": "1G", "count": 2}, {"size": "2M", "count": 64}]
    applied = call(hugepages.main, host, pages=wanted, method="both")
    assert [action["where"] for action in applied["actions"] if action["what"] == "hugepages.pages"] == ["2048kB"]
    assert {finding["status"] for finding in applied["findings"]} == {"changed", "needs_reboot"}
    assert "hugepagesz=1G hugepages=2 hugepagesz=2M hugepages=64" in host.boot()


def test_a_mount_and_a_group_and_back(host: FakeKernel, call: Call) -> None:
    (Path(host.root) / "etc/group").write_text("root:x:0:\npostgres:x:115:\n")
    before = everything(host)
    wanted = {"mount": {"path": "/srv/huge-1G", "size": "1G"}, "group": "postgres"}
    checked = call(hugepages.main, host, check=True, **wanted)
    assert everything(host) == before
    applied = call(hugepages.main, host, **wanted)
    again = call(hugepages.main, host, **wanted)
    assert [result["changed"] for result in (checked, applied, again)] == [True, True, False]
    assert checked["diff"] == applied["diff"]
    unit = "srv-huge\\x2d1G.mount"  # as systemd-escape --path --suffix=mount /srv/huge-1G says
    text = (Path(host.root) / "etc/systemd/system" / unit).read_text()
    assert "Where=/srv/huge-1G\n" in text
    assert "Options=pagesize=1G,gid=115,mode=1770\n" in text
    assert "ConditionPathExists=/sys/kernel/mm/hugepages/hugepages-1048576kB\n" in text
    assert host.commands == ["systemctl daemon-reload", f"systemctl start {unit}"]
    assert (Path(host.root) / "proc/sys/vm/hugetlb_shm_group").read_text() == "115\n"
    assert call(restore.main, host)["changed"]
    assert everything(host) == before
    assert not (Path(host.root) / "srv/huge-1G").exists()


@pytest.mark.parametrize("replaced", [False, True], ids=["removed", "a folder"])
def test_a_mount_whose_unit_was_removed_leaves_no_link_unreported(host: FakeKernel, call: Call, replaced: bool) -> None:
    systemd, mounts = Path(host.root) / "etc/systemd/system", Path(host.root) / "proc/1/mounts"
    before, unmounted = everything(host), mounts.read_text()
    call(hugepages.main, host, mount={"path": "/mnt/huge"})
    unit, link = systemd / "mnt-huge.mount", systemd / "local-fs.target.wants/mnt-huge.mount"
    unit.unlink()
    if replaced:
        unit.mkdir()
        said = call(restore.main, host)["errors"]["hugepages"]
        assert f"{unit.name} exists and nearmetal didn't write it: move it away and run again" in said
        unit.rmdir()
    assert "mnt-huge.mount is left of a unit" in call(restore.main, host)["errors"]["hugepages"]
    link.unlink()
    mounts.write_text(unmounted)
    (Path(host.root) / "mnt/huge").rmdir()
    assert not call(restore.main, host).get("failed")
    assert everything(host) == before


def test_a_mount_that_fails_leaves_nothing(host: FakeKernel, call: Call) -> None:
    before = everything(host)
    host.moods["systemctl start mnt-huge.mount"] = "no such page size"
    failed = call(hugepages.main, host, mount={"path": "/mnt/huge"})
    assert failed["failed"]
    assert "no such page size" in failed["msg"]
    assert everything(host) == before


def test_a_folder_in_use_gets_no_mount(host: FakeKernel, call: Call) -> None:
    folder = Path(host.root) / "srv/data"
    folder.mkdir(parents=True)
    (folder / "precious").write_text("")
    failed = call(hugepages.main, host, mount={"path": "/srv/data"})
    assert failed["failed"]
    assert "would hide what is in it" in failed["msg"]


def test_an_existing_folder_stays(host: FakeKernel, call: Call) -> None:
    folder = Path(host.root) / "srv/huge"
    folder.mkdir(parents=True)
    for path in ("/srv/huge", "/mnt/huge"):
        assert call(hugepages.main, host, mount={"path": path})["changed"]
    assert call(hugepages.main, host, state="restored")["changed"]
    assert folder.is_dir()
    assert not (Path(host.root) / "mnt/huge").exists()
