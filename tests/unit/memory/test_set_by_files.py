# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tuned, rebooted, restored: the host gets back what it would have had since that boot without nearmetal."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads.registry import WORKLOADS
from ansible_collections.nearmetal.ec2.plugins.modules import restore, tune

from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import fresh
from tests.support.hosts import files_of
from tests.support.sequences.faults import Killed, Writes

Call = Callable[..., Dict[str, Any]]
SECOND, THIRD = (f"{digit * 8}-2222-3333-4444-555555555555" for digit in "23")
RELEASE = "/proc/sys/kernel/osrelease"
MEMINFO = "/proc/meminfo"
SWAPPINESS, DIRTY, MIN_FREE, BACKLOG = (
    f"/proc/sys/{name}"
    for name in ("vm/swappiness", "vm/dirty_ratio", "vm/min_free_kbytes", "net/ipv4/tcp_max_syn_backlog")
)
THP, DEFRAG = (f"/sys/kernel/mm/transparent_hugepage/{name}" for name in ("enabled", "khugepaged/defrag"))
NO_TURBO = "/sys/devices/system/cpu/intel_pstate/no_turbo"
# A value that the operator's host had before nearmetal, and the one that is wanted instead.
WANTED: Dict[str, Dict[str, Any]] = {"memory": {"swappiness": 1}, "hugepages": {"thp": "never"}}
CONFIG = {f"/boot/config-{files_of('nitro')[RELEASE].strip()}": "CONFIG_TRANSPARENT_HUGEPAGE_MADVISE=y\n"}
LEFT = ("needs_reboot", "advice")
# The file of a knob that has no place.
FILES = {"governor": "scaling_governor", "energy_performance_preference": "energy_performance_preference"}
NEWER = {RELEASE: "6.99.0-1-cloud-amd64\n"}


def text(host: FakeKernel, path: str) -> str:
    return (Path(host.root) / path.lstrip("/")).read_text().strip()


def write(host: FakeKernel, path: str, content: str) -> None:
    place = Path(host.root) / path.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(content)


def kernel_files(host: FakeKernel) -> Dict[str, str]:
    """What the kernel says, apart from what differs between two boots by itself."""
    root = Path(host.root)
    places = [*(root / "proc/sys/vm").rglob("*"), *(root / "proc/sys/net").rglob("*"), *(root / "sys").rglob("*")]
    found = {str(path.relative_to(root)): path.read_text() for path in places if path.is_file()}
    return {path: content for path, content in found.items() if "msi_irqs" not in path}


def waiting(result: Dict[str, Any]) -> List[Dict[str, Any]]:
    rows = [finding for finding in result["findings"] if finding["status"] == "needs_reboot"]
    return sorted(rows, key=lambda row: str(row["knob"]))


def said(result: Dict[str, Any]) -> Dict[str, str]:
    """Knob → reason, of what a restore says beside its changes."""
    return {row["knob"]: row["reason"] for row in result["findings"] if row["status"] not in ("changed", "ok")}


@pytest.mark.parametrize("workload", sorted(WORKLOADS))
@pytest.mark.parametrize("kind", ["nitro", "metal", "xen_hvm", "graviton_metal"])
def test_every_workload_is_taken_back_as_if_it_had_never_been(
    tmp_path: Path, call: Call, kind: str, workload: str
) -> None:
    host, twin = fresh(tmp_path / "tuned", kind), fresh(tmp_path / "twin", kind)
    call(tune.main, host, workload=workload)
    for machine in (host, twin):
        machine.reboot(SECOND)
    back = call(restore.main, host)
    assert "failed" not in back, back["msg"]
    named = {row["where"].replace(".", "/") or FILES[row["knob"]] for row in back["findings"] if row["status"] in LEFT}
    now, wanted = kernel_files(host), kernel_files(twin)
    left = {path for path in wanted if now.get(path) != wanted[path]}
    assert [path for path in left if not any(name in path for name in named)] == []
    assert all(any(name in path for path in left) for name in named if "min_free" not in name), "said for nothing"


@pytest.fixture
def host(tmp_path: Path) -> FakeKernel:
    """An operator's host, with a value of its own that no file sets."""
    host = fresh(tmp_path, "nitro")
    host.write_value(SWAPPINESS, "30")
    host.written.clear()
    return host


def test_the_operators_own_value_comes_back(host: FakeKernel, call: Call) -> None:
    call(tune.main, host, concerns=WANTED)
    host.reboot(SECOND)
    assert text(host, SWAPPINESS) == "1"
    back = call(restore.main, host)
    assert text(host, SWAPPINESS) == "30"
    assert not back["reboot_required"]
    assert not host.exists("/run/nearmetal/until_boot.json")


def test_a_line_of_somebody_else_comes_before_the_original(host: FakeKernel, call: Call) -> None:
    call(tune.main, host, concerns={"memory": {"swappiness": 1, "dirty": "5%"}, **WANTED})
    write(host, "/usr/lib/sysctl.d/10-site.conf", "vm.swappiness = 20\n# a comment\n-vm/dirty_ratio=35\n")
    write(host, "/etc/sysctl.d/10-site.conf", "vm/swappiness=25\nvm.dirty_ratio = 35\n")
    write(host, "/etc/tmpfiles.d/thp.conf", f"w {THP} - - - - always\n")
    host.reboot(SECOND)
    write(host, THP, "always madvise [never]\n")  # our line, were it read first
    call(restore.main, host)
    assert (text(host, SWAPPINESS), text(host, DIRTY)) == ("25", "35")
    assert "[always]" in text(host, THP)


def test_a_line_of_somebody_else_is_in_the_words_of_the_kernel(tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "metal")
    write(host, "/etc/tmpfiles.d/turbo.conf", f"w {NO_TURBO} - - - - 1\n")
    host.write_value(NO_TURBO, "1\n")
    call(tune.main, host, concerns={"cpu_power": {"turbo": "enabled"}})
    host.reboot(SECOND)
    host.write_value(NO_TURBO, "0\n")
    call(restore.main, host)
    assert text(host, NO_TURBO) == "1"


REFUSED = {
    "memory": {"/etc/sysctl.d/10-site.conf": "vm.swappiness = plenty\nvm.dirty_bytes = 100\n"},
    "vector": {"/etc/sysctl.d/10-site.conf": "vm.swappiness = 20 30\n"},
    "thp": {"/etc/tmpfiles.d/a.conf": f"w {THP} - - - - nevr\n"},
}


@pytest.mark.parametrize("files", REFUSED.values(), ids=REFUSED)
def test_a_line_that_the_kernel_refuses_sets_nothing(host: FakeKernel, call: Call, files: Dict[str, str]) -> None:
    before = {path: text(host, path) for path in (SWAPPINESS, DIRTY, THP)}
    call(tune.main, host, concerns={**WANTED, "memory": {"swappiness": 1, "dirty": "5%"}})
    for path, lines in files.items():
        write(host, path, lines)
    host.reboot(SECOND)
    back = call(restore.main, host)
    assert "failed" not in back, back["msg"]
    assert {path: text(host, path) for path in before} == before


def test_a_value_that_the_host_refuses_waits_for_the_boot(host: FakeKernel, call: Call) -> None:
    """The files of nearmetal go all the same."""
    call(tune.main, host, concerns=WANTED)
    host.reboot(SECOND)
    host.moods[SWAPPINESS] = "EINVAL"
    back = call(restore.main, host)
    assert "failed" not in back, back["msg"]
    assert "sysctl -w vm.swappiness=30" in said(back)["swappiness"]
    assert not host.exists("/etc/sysctl.d/99-nearmetal-memory.conf")


def test_a_line_counts_where_the_wanted_value_was_there_before(tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "nitro")
    call(tune.main, host, concerns={"memory": {"swappiness": int(text(host, SWAPPINESS))}})
    write(host, "/etc/sysctl.d/10-site.conf", "vm.swappiness=25\n")
    host.reboot(SECOND)
    call(restore.main, host)
    assert text(host, SWAPPINESS) == "25"


@pytest.mark.parametrize(("line", "choice"), [("", "madvise"), (" transparent_hugepage=never", "never")])
def test_the_kernels_own_choice_of_huge_pages(tmp_path: Path, call: Call, line: str, choice: str) -> None:
    """Also where somebody had set another one by hand before: the boot would have dropped it."""
    host = FakeKernel(tmp_path, files_of("nitro", {**CONFIG, THP: "[always] madvise never\n"}))
    write(host, "/proc/cmdline", f"ro{line}\n")
    call(tune.main, host, concerns={"hugepages": {"thp": "madvise" if line else "never"}})
    host.reboot(SECOND)
    assert not call(restore.main, host)["reboot_required"]
    assert f"[{choice}]" in text(host, THP)


def test_a_small_host_has_no_huge_pages_by_itself(tmp_path: Path, call: Call) -> None:
    small = {**CONFIG, MEMINFO: "MemTotal: 480000 kB\n", THP: "always madvise [never]\n"}
    host = FakeKernel(tmp_path, files_of("nitro", small))
    call(tune.main, host, concerns={"hugepages": {"thp": "always"}})
    host.reboot(SECOND)
    call(restore.main, host)
    assert "[never]" in text(host, THP)


OTHERS = {
    "another kernel": NEWER,
    "more memory": {MEMINFO: "MemTotal: 999999999 kB\n"},
    "an unknown kernel": {RELEASE: "\n"},
}


@pytest.mark.parametrize("changed", OTHERS.values(), ids=OTHERS)
def test_the_original_of_another_machine_is_named_and_not_set(
    host: FakeKernel, call: Call, changed: Dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    call(tune.main, host, concerns=WANTED)
    host.reboot(SECOND, {**host.hardware, **changed})
    back = call(restore.main, host, check=True)
    [finding] = [row for row in waiting(back) if row["knob"] == "swappiness"]
    assert (finding["now"], finding["wanted"]) == ("1", "30")
    assert "sysctl -w vm.swappiness=30" in finding["reason"]
    assert command(["restore"], host) == 3
    printed = capsys.readouterr().out.splitlines()
    assert any(line.startswith("  memory.swappiness vm.swappiness is 1: ") for line in printed)
    assert printed[-1] in ("1 setting waits for a reboot", "2 settings wait for a reboot")
    assert text(host, SWAPPINESS) == "1"


def test_a_number_that_the_kernel_computes_is_named_and_not_set(host: FakeKernel, call: Call) -> None:
    before = text(host, BACKLOG)
    call(tune.main, host, concerns={"network_stack": {"max_syn_backlog": 8192}})
    host.reboot(SECOND)
    back = call(restore.main, host)
    [finding] = waiting(back)
    assert (finding["now"], finding["wanted"]) == ("8192", before)
    assert f"sysctl -w net.ipv4.tcp_max_syn_backlog={before}" in finding["reason"]
    assert "kernel computes" in finding["reason"]


def test_a_value_that_the_host_had_anyway_needs_no_word(tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "nitro")
    same = {"network_stack": {"somaxconn": 4096}, "memory": {"dirty_background": "10%", "swappiness": 1}}
    call(tune.main, host, concerns=same)
    host.reboot(SECOND, {**host.hardware, **NEWER})
    back = call(restore.main, host)
    assert set(said(back)) == {"swappiness"}


def test_an_original_that_is_wanted_now_is_still_the_original_after_a_boot(tmp_path: Path, call: Call) -> None:
    """Only the file tells what set it then, and the file is nearmetal's."""
    host = fresh(tmp_path, "nitro")
    before = text(host, SWAPPINESS)
    for swappiness in (1, int(before)):
        call(tune.main, host, concerns={"memory": {"swappiness": swappiness}})
    host.reboot(SECOND, {**host.hardware, **NEWER})
    back = call(restore.main, host)
    assert said(back) == {}
    assert not back["reboot_required"]


def test_what_followed_by_itself_is_named(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("nitro", {**CONFIG, THP: "always [madvise] never\n", MIN_FREE: "67584\n"}))
    call(tune.main, host, concerns={"hugepages": {"thp": "never"}})
    write(host, MIN_FREE, "16384\n")  # the kernel's own number at a boot without huge pages
    host.hardware[MIN_FREE] = "16384\n"
    host.reboot(SECOND)
    assert text(host, MIN_FREE) == "16384"
    back = call(restore.main, host)
    assert set(said(back)) == {"min_free_kbytes"}
    assert "hugepages.thp" in said(back)["min_free_kbytes"]
    assert text(host, MIN_FREE) == "67584", "the kernel raised it again"


def test_what_followed_on_a_copy_of_an_image_follows_again(tmp_path: Path, call: Call) -> None:
    files = {**CONFIG, THP: "always [madvise] never\n", MIN_FREE: "16384\n"}
    host = FakeKernel(tmp_path, files_of("nitro", files))
    call(tune.main, host, bake=True, concerns={"hugepages": {"thp": "never"}})
    other = {"/sys/devices/virtual/dmi/id/board_asset_tag": "i-0fedcba9876543210\n"}
    host.reboot(SECOND, {**host.hardware, **other})
    call(restore.main, host)
    assert "[madvise]" in text(host, THP)
    assert text(host, MIN_FREE) == "67584"


def test_what_waits_is_said_until_the_boot_and_is_no_original(
    host: FakeKernel, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second restore said that no reboot was needed, and left the values of the first tuning."""
    call(tune.main, host, concerns=WANTED)
    host.reboot(SECOND, {**host.hardware, **NEWER})
    first = waiting(call(restore.main, host))
    assert "swappiness" in {row["knob"] for row in first}
    for _time in range(2):  # nothing is forgotten by saying it
        assert waiting(call(restore.main, host)) == first
    assert command(["status"], host) == 1
    assert "swappiness" in capsys.readouterr().out
    call(tune.main, host, concerns={"memory": {"swappiness": 5}})
    call(tune.main, host, concerns={"memory": {"swappiness": 1}})
    command(["status"], host)
    assert "before nearmetal: 1)" not in capsys.readouterr().out
    again = call(restore.main, host)
    assert "swappiness" in {row["knob"] for row in waiting(again)}
    assert again["reboot_required"]
    host.reboot(THIRD)
    assert text(host, SWAPPINESS) == "60"
    assert not call(restore.main, host)["reboot_required"]
    assert command(["restore"], host) == 0


def test_another_run_says_what_waits(host: FakeKernel, call: Call) -> None:
    call(tune.main, host, concerns=WANTED)
    host.reboot(SECOND, {**host.hardware, **NEWER})
    first = waiting(call(restore.main, host))
    other = call(tune.main, host, check=True, concerns={"network_stack": {"somaxconn": 8192}})
    assert [row for row in waiting(other) if row in first] == first


@pytest.mark.parametrize("after", [False, True])
def test_a_restore_that_is_killed_at_any_write_forgets_nothing(tmp_path: Path, call: Call, after: bool) -> None:
    for at in range(1, 100):
        host = fresh(tmp_path / str(at), "nitro")
        call(tune.main, host, concerns=WANTED)
        host.reboot(SECOND, {**host.hardware, **NEWER})
        writes = Writes(host, {"kind": "kill", "at": at, "after": after})
        with suppress(Killed), writes.counted():
            call(restore.main, host)
        back = call(restore.main, host)
        assert "failed" not in back
        assert "swappiness" in {row["knob"] for row in waiting(back)}, f"killed at write {at}"
        assert call(restore.main, host)["reboot_required"]
        if writes.count < at:
            break
    assert 5 < at < 99
