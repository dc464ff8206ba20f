# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tuned, rebooted, and tuned again with another value: a file of ours had set the first one at boot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.modules import clocksource, restore, smt, tune

from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of

Call = Callable[..., Dict[str, Any]]
JOURNAL = "var/lib/nearmetal/journal.json"
SECOND_BOOT, THIRD_BOOT = (f"{number * 8}-0000-0000-0000-000000000000" for number in "23")
BOOT_ID = "/proc/sys/kernel/random/boot_id"
FIRST_BOOT = "11111111-2222-3333-4444-555555555555"
CLOCK = "/sys/devices/system/clocksource/clocksource0"
CPU = "/sys/devices/system/cpu"
SOMAXCONN = "/proc/sys/net/core/somaxconn"
THP = "/sys/kernel/mm/transparent_hugepage/enabled"

# Concern, option → file, the kernel's own text, and two texts with their values.
PERSISTED = {
    ("network_stack", "somaxconn"): (SOMAXCONN, "4096\n", {8192: "8192\n", 16384: "16384\n"}),
    ("hugepages", "thp"): (
        THP,
        "[always] madvise never\n",
        {"never": "always madvise [never]\n", "madvise": "always [madvise] never\n"},
    ),
}


@pytest.fixture(params=sorted(PERSISTED), ids=lambda knob: knob[1])
def knob(request: pytest.FixtureRequest) -> "tuple[str, str]":
    found: "tuple[str, str]" = request.param
    return found


@pytest.fixture
def host(tmp_path: Path) -> FakeKernel:
    return FakeKernel(tmp_path, files_of("nitro", {SOMAXCONN: "4096\n", THP: "[always] madvise never\n"}))


def text(host: FakeKernel, path: str) -> str:
    return (Path(host.root) / path.lstrip("/")).read_text()


def everything_works(host: FakeKernel, call: Call) -> None:
    assert command(["reapply"], host) == 0
    assert command(["status"], host) == 0
    assert "failed" not in call(tune.main, host, concerns={"clocksource": {"source": "auto"}})


def finding_of(done: Dict[str, Any], name: str) -> Dict[str, Any]:
    [finding] = [finding for finding in done["findings"] if finding["knob"] == name]
    return dict(finding)


def test_another_value_after_a_reboot(host: FakeKernel, call: Call, knob: "tuple[str, str]") -> None:
    concern, option = knob
    path, own, texts = PERSISTED[knob]
    first, second = texts
    call(tune.main, host, concerns={concern: {option: first}})
    host.reboot(SECOND_BOOT)
    for _again in range(2):
        done = call(tune.main, host, concerns={concern: {option: second}})
        assert "failed" not in done, done["msg"]
    everything_works(host, call)
    back = call(restore.main, host)
    assert "failed" not in back
    assert not back["reboot_required"]
    assert text(host, path) == own, "the kernel and the host are as they were"
    assert not any("nearmetal" in str(path.relative_to(host.root)) for path in Path(host.root, "etc").rglob("*"))
    assert not (Path(host.root) / JOURNAL).exists()
    host.reboot(THIRD_BOOT)
    again = call(restore.main, host)
    assert not again["changed"]
    assert not again["reboot_required"]


def test_from_the_databases_huge_pages_to_the_caches(call: Call, tmp_path: Path) -> None:
    host = FakeKernel(tmp_path, files_of("nitro_big"))
    call(tune.main, host, workload="in_memory_database")
    host.reboot(SECOND_BOOT)
    assert "failed" not in call(tune.main, host, workload="cache")
    assert not call(tune.main, host, workload="cache")["changed"]
    assert command(["status"], host) == 0
    assert command(["restore"], host) == 0


def test_a_journal_that_an_earlier_version_damaged_is_read(
    host: FakeKernel, call: Call, knob: "tuple[str, str]"
) -> None:
    """It wrote null as the original of such a value, and refused to read it."""
    concern, option = knob
    first, second = PERSISTED[knob][2]
    call(tune.main, host, concerns={concern: {option: first}})
    place = Path(host.root) / JOURNAL
    journal = json.loads(place.read_text())
    for entry in journal["entries"]:
        if entry["what"] != "files":
            entry.update(original=None, boot_id=SECOND_BOOT)
    place.write_text(json.dumps(journal))
    host.reboot(SECOND_BOOT)
    everything_works(host, call)
    assert "failed" not in call(tune.main, host, concerns={concern: {option: second}})
    everything_works(host, call)
    back = call(restore.main, host)
    assert "failed" not in back
    assert finding_of(back, option)["status"] == "needs_reboot"
    assert not (Path(host.root) / JOURNAL).exists()


def test_a_value_that_could_not_be_put_back_is_not_changed(tmp_path: Path, call: Call) -> None:
    qdisc = "/proc/sys/net/core/default_qdisc"
    host = FakeKernel(tmp_path, files_of("nitro", {qdisc: "somebody's.own\n"}))
    done = call(tune.main, host, concerns={"network_stack": {"qdisc": "fq"}, "clocksource": {"source": "kvm-clock"}})
    assert "couldn't restore it later" in done["errors"]["network_stack"]
    assert text(host, qdisc) == "somebody's.own\n"
    assert "failed" not in call(clocksource.main, host, source="tsc")
    assert command(["restore"], host) == 0


def test_a_restore_after_a_reboot_heeds_the_clock_source_of_the_command_line(tmp_path: Path, call: Call) -> None:
    current = f"{CLOCK}/current_clocksource"
    files = {f"{CLOCK}/available_clocksource": "xen tsc hpet acpi_pm\n", current: "hpet\n"}
    host = FakeKernel(tmp_path, files_of("xen_hvm", {**files, "/proc/cmdline": "ro clocksource=hpet\n"}))
    call(clocksource.main, host, source="tsc")
    host.reboot(SECOND_BOOT)
    assert text(host, current) == "tsc\n", "our file for systemd-tmpfiles has the last word"
    call(restore.main, host)
    assert text(host, current) == "hpet\n"


def test_a_restore_after_a_reboot_heeds_maxcpus(tmp_path: Path, call: Call) -> None:
    """The operator replaced it by an argument that leaves out the same CPUs."""
    host = FakeKernel(tmp_path, files_of("nitro", {f"{CPU}/smt/control": None}))
    call(smt.main, host, threads="disabled")
    assert text(host, f"{CPU}/online") == "0-3\n"
    (tmp_path / "proc/cmdline").write_text("ro maxcpus=4\n")
    host.reboot(SECOND_BOOT)
    assert text(host, f"{CPU}/online") == "0-3\n"
    call(restore.main, host)
    assert text(host, f"{CPU}/online") == "0-3\n"
    assert not host.exists(f"/{JOURNAL}")


def become_unreadable(host: FakeKernel, path: str, how: str) -> None:
    place = Path(host.root) / path.lstrip("/")
    place.unlink()
    if how == "empty":
        place.write_text("")
    elif how == "an error":
        place.mkdir()


@pytest.mark.parametrize("how", ["empty", "an error", "absent"])
def test_originals_are_kept_while_the_boot_is_unknown(
    host: FakeKernel, call: Call, capsys: "pytest.CaptureFixture[str]", how: str
) -> None:
    """They were mistaken for originals of an earlier boot and forgotten."""
    call(tune.main, host, concerns={"network_stack": {"somaxconn": 8192}})
    written = (Path(host.root) / JOURNAL).read_bytes()
    become_unreadable(host, BOOT_ID, how)
    runs = (
        lambda: call(restore.main, host),
        lambda: call(restore.main, host, _ansible_check_mode=True),
        lambda: call(tune.main, host, concerns={"network_stack": {"somaxconn": 16384}}),
        lambda: call(tune.main, host, concerns={"clocksource": {"source": "auto"}}, prune=True),
    )
    for run in runs:
        done = run()
        assert done["failed"]
        assert done["msg"].startswith(f"{BOOT_ID} can't be read")
    for arguments in (["restore"], ["reapply"], ["status"], ["plan"]):
        assert command(arguments, host) != 0, arguments
        assert f"{BOOT_ID} can't be read" in capsys.readouterr().err, arguments
    assert (Path(host.root) / JOURNAL).read_bytes() == written
    assert text(host, SOMAXCONN) == "8192\n"
    place = Path(host.root) / BOOT_ID.lstrip("/")
    if how == "an error":
        place.rmdir()
    place.write_text(FIRST_BOOT + "\n")
    assert "failed" not in call(restore.main, host)
    assert text(host, SOMAXCONN) == "4096\n"


def test_nothing_is_recorded_while_the_boot_is_unknown(host: FakeKernel, call: Call) -> None:
    become_unreadable(host, BOOT_ID, "empty")
    done = call(tune.main, host, concerns={"network_stack": {"somaxconn": 8192}})
    assert f"{BOOT_ID} can't be read" in done["msg"]
    assert text(host, SOMAXCONN) == "4096\n"
    assert not (Path(host.root) / JOURNAL).exists()


@pytest.mark.parametrize("unreadable_first", [False, True])
def test_the_boot_id_identifies_the_instance_whose_id_cannot_be_read(
    host: FakeKernel, call: Call, unreadable_first: bool
) -> None:
    """The originals were mistaken for those of the baked instance."""
    name = "/sys/devices/virtual/dmi/id/board_asset_tag"
    known = text(host, name)
    if unreadable_first:
        become_unreadable(host, name, "empty")
    call(tune.main, host, concerns={"network_stack": {"somaxconn": 8192}})
    (Path(host.root) / name.lstrip("/")).write_text(known if unreadable_first else "")
    back = call(restore.main, host)
    assert "failed" not in back
    assert not back["reboot_required"]
    assert text(host, SOMAXCONN) == "4096\n"
