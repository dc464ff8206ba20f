# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules' real main() on a fake kernel: check, apply, check, apply; failures; restore."""

from __future__ import annotations

import json
import os
import time
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Dict, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._host import store
from ansible_collections.nearmetal.ec2.plugins.modules import clocksource, network_stack, restore, tune

from tests.support.fake_kernel import CLOCK, FakeKernel, everything
from tests.support.hosts import files_of

Call = Callable[..., Dict[str, Any]]
CURRENT = f"{CLOCK}/current_clocksource"
FILE = "/etc/tmpfiles.d/nearmetal-clocksource.conf"
JOURNAL = "/var/lib/nearmetal/journal.json"


@pytest.fixture
def host(tmp_path: Path) -> FakeKernel:
    """A Xen HVM instance on its slow default clock."""
    return FakeKernel(tmp_path, files_of("xen_hvm"))


def current(host: FakeKernel) -> str:
    return (Path(host.root) / CURRENT.lstrip("/")).read_text().strip()


def test_check_apply_check_apply(host: FakeKernel, call: Call) -> None:
    before = everything(host)
    checked = call(clocksource.main, host, check=True, source="tsc")
    assert everything(host) == before, "check mode wrote"
    applied = call(clocksource.main, host, source="tsc")
    assert current(host) == "tsc"
    assert "w! " + CURRENT + " - - - - tsc\n" in (Path(host.root) / FILE.lstrip("/")).read_text()
    again_checked = call(clocksource.main, host, check=True, source="tsc")
    again = call(clocksource.main, host, source="tsc")
    results = (checked, applied, again_checked, again)
    assert [result["changed"] for result in results] == [True, True, False, False]
    assert checked["diff"] == applied["diff"]
    assert checked["diff"]["before"]["clock"] == {"current": "xen"}
    assert checked["diff"]["after"]["clock"] == {"current": "tsc"}
    assert checked["msg"] == "clocksource: would change xen → tsc, persisted, no reboot"
    assert applied["msg"] == "clocksource: xen → tsc, persisted, no reboot"
    assert again["msg"] == "clocksource: as wanted"
    assert [finding["status"] for finding in applied["findings"]] == ["changed", "changed"]
    owners = [[finding["owner"] for finding in result["findings"]] for result in (checked, applied, again)]
    assert owners == [["", ""], ["", ""], ["nearmetal.ec2", "nearmetal.ec2"]], "known once the journal has it"
    (Path(host.root) / CURRENT.lstrip("/")).write_text("xen\n")
    foreign = call(clocksource.main, host, check=True, source="tsc")
    owner_of = {finding["knob"]: finding["owner"] for finding in foreign["findings"]}
    assert owner_of == {"source": "", "persist": "nearmetal.ec2"}, "somebody else wrote xen"


def test_restore_is_identity(host: FakeKernel, call: Call) -> None:
    before = everything(host)
    call(clocksource.main, host, source="tsc")
    checked = call(restore.main, host, check=True)
    assert checked["changed"]
    restored = call(restore.main, host)
    assert restored["changed"]
    assert restored["diff"] == checked["diff"]
    shown = {finding["knob"]: (finding["now"], finding["wanted"]) for finding in restored["findings"]}
    assert shown["persist"] == ("written", None), "the text of a file says nothing to readers of a report"
    assert everything(host) == before
    assert not call(restore.main, host)["changed"]


def test_state_restored_takes_one_concern_back(host: FakeKernel, call: Call) -> None:
    before = everything(host)
    call(clocksource.main, host, source="tsc")
    assert call(clocksource.main, host, state="restored")["changed"]
    assert everything(host) == before


def test_an_option_dropped_is_taken_back(host: FakeKernel, call: Call) -> None:
    call(network_stack.main, host, somaxconn=8192, max_syn_backlog=8192)
    checked = call(network_stack.main, host, check=True, somaxconn=8192)
    assert checked["diff"]["after"]["sysctl"] == {"net.ipv4.tcp_max_syn_backlog": "512"}
    assert call(network_stack.main, host, somaxconn=8192)["changed"]
    assert (Path(host.root) / "proc/sys/net/ipv4/tcp_max_syn_backlog").read_text() == "512\n"
    assert (Path(host.root) / "proc/sys/net/core/somaxconn").read_text() == "8192\n"


def test_original_of_the_first_run_survives_later_runs(host: FakeKernel, call: Call) -> None:
    host.write_value(CURRENT, "acpi_pm\n")
    call(clocksource.main, host, source="tsc", persist=False)
    call(clocksource.main, host, source="hpet", persist=False)
    call(restore.main, host)
    assert current(host) == "acpi_pm"


def test_a_value_changed_by_somebody_else_is_left_alone(host: FakeKernel, call: Call) -> None:
    call(clocksource.main, host, source="tsc", persist=False)
    host.write_value(CURRENT, "acpi_pm\n")
    restored = call(restore.main, host)
    assert current(host) == "acpi_pm"
    assert "left alone" in restored["findings"][0]["reason"]
    assert not host.exists(JOURNAL)


def test_a_reboot_voids_the_runtime_original(host: FakeKernel, call: Call) -> None:
    host.write_value(CURRENT, "acpi_pm\n")
    call(clocksource.main, host, source="tsc")
    host.reboot("99999999-0000-0000-0000-000000000000")
    host.write_value(CURRENT, "tsc\n")  # as systemd-tmpfiles does at boot
    assert not call(clocksource.main, host, source="tsc")["changed"]
    assert call(restore.main, host)["changed"]
    assert current(host) == "xen", "the kernel's own choice of this boot"
    assert not host.exists(FILE)


def test_another_instance_drops_the_runtime_originals(tmp_path: Path, call: Call) -> None:
    files = files_of("nitro", {CURRENT: "acpi_pm\n"})
    host = FakeKernel(tmp_path, files)
    call(clocksource.main, host, source="tsc")
    tag = Path(host.root) / "sys/devices/virtual/dmi/id/board_asset_tag"
    tag.write_text("i-0fedcba9876543210\n")
    restored = call(restore.main, host)
    assert [action["what"] for action in restored["actions"]] == ["files", "wanted"]
    assert current(host) == "tsc", "this instance's own choice"
    assert not host.exists(FILE)


@pytest.mark.parametrize("mood", ["EIO", "EPERM", "ENOENT", "EBUSY", "late", "ignores", "half"])
def test_a_kernel_that_does_not_take_the_value(host: FakeKernel, call: Call, mood: str) -> None:
    before = everything(host)
    host.moods[CURRENT] = mood
    failed = call(tune.main, host, concerns={"clocksource": {"source": "tsc"}})
    assert failed["failed"]
    assert "clocksource" in failed["msg"]
    assert "tsc" in failed["msg"]
    assert "taken back" in failed["msg"]
    assert not failed["changed"]
    assert everything(host) == before


def test_tune_does_what_the_module_does(host: FakeKernel, call: Call) -> None:
    checked = call(tune.main, host, check=True, workload="in_memory_database")
    assert checked["platform"]["host_class"] == "xen_hvm"
    assert checked["workload"] == ["in_memory_database"]
    assert call(tune.main, host, workload="in_memory_database")["changed"]
    assert current(host) == "tsc"
    assert not call(tune.main, host, workload="in_memory_database")["changed"]


def test_the_users_option_wins_over_the_workloads(host: FakeKernel, call: Call) -> None:
    call(tune.main, host, workload="base", concerns={"clocksource": {"source": "hpet"}})
    assert current(host) == "hpet"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"workload": "sap_banana"}, ["sap_banana", "in_memory_database"]),
        ({"concerns": {"clock": {}}}, ["'clock'", "clocksource"]),
        ({"concerns": {"clocksource": {"sorce": "tsc"}}}, ["clocksource.sorce", "source"]),
        ({"concerns": {"clocksource": {"persist": "perhaps"}}}, ["clocksource.persist", "true, false or last"]),
        ({"concerns": {"clocksource": {"source": True}}}, ["clocksource.source", "quotes"]),
        ({"concerns": {"clocksource": ["tsc"]}}, ["clocksource", "mapping"]),
        ({"concerns": {"clocksource": {"source": "atomic"}}}, ["clocksource.source", "atomic", "xen tsc hpet acpi_pm"]),
        ({}, ["workload", "concerns"]),
    ],
    ids=lambda value: json.dumps(value) if isinstance(value, dict) else "",
)
def test_a_wrong_option_is_named_and_nothing_changes(
    host: FakeKernel, call: Call, options: Dict[str, Any], says: list[str]
) -> None:
    before = everything(host)
    failed = call(tune.main, host, **options)
    assert failed["failed"]
    for part in says:
        assert part in failed["msg"]
    assert everything(host) == before


def test_strict_fails_on_a_refusal(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("xen_pv"))
    assert not call(clocksource.main, host, source="auto").get("failed")
    strict = call(clocksource.main, host, source="auto", strict=True)
    assert strict["failed"]
    assert "clocksource.source is refused" in strict["msg"]


def test_not_root(host: FakeKernel, call: Call) -> None:
    host.root_user = False
    for check in (True, False):
        failed = call(clocksource.main, host, check=check, source="tsc")
        assert failed["failed"]
        assert "become: true" in failed["msg"]


@pytest.mark.parametrize("check", [True, False])
def test_read_only_sys(host: FakeKernel, call: Call, check: bool) -> None:
    before = everything(host)
    host.read_only = True
    failed = call(clocksource.main, host, check=check, source="tsc")
    assert CURRENT in failed["msg"]
    assert "read-only" in failed["msg"]
    assert everything(host) == before


def test_a_second_run_at_the_same_time(host: FakeKernel, call: Call) -> None:
    with store.lock(host):
        failed = call(clocksource.main, host, source="tsc")
    assert str(os.getpid()) in failed["msg"]
    assert "another nearmetal run" in failed["msg"]
    assert current(host) == "xen"


def test_a_lock_that_does_not_name_a_process(host: FakeKernel, call: Call) -> None:
    with store.lock(host):
        Path(host.real(store.LOCK)).write_bytes(b"\x1b[2J\x1b]0;no\x07 x")
        failed = call(clocksource.main, host, source="tsc")
    assert "another nearmetal run (pid unknown)" in failed["msg"]


def test_a_run_waits_for_the_unit(host: FakeKernel, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    unit = ExitStack()
    unit.enter_context(store.lock(host, holder=store.UNIT))
    waited: List[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        if sum(waited) > 20:
            unit.close()

    begin = time.monotonic()
    monkeypatch.setattr(store, "time", SimpleNamespace(sleep=sleep, monotonic=lambda: begin + sum(waited)))
    assert call(clocksource.main, host, source="tsc")["changed"]
    assert current(host) == "tsc"


def entry(**changes: Any) -> Dict[str, Any]:
    good = {
        "concern": "clocksource",
        "knob": "source",
        "what": "clock.current",
        "where": "",
        "original": "xen",
        "ours": ["tsc"],
        "boot_id": "11111111-2222-3333-4444-555555555555",
    }
    return {**good, **changes}


HOSTILE = {
    "empty": "",
    "no JSON": "{",
    "another type": "[1]",
    "no entries": '{"version": 1}',
    "newer": '{"version": 99, "instance": null, "entries": []}',
    "deep": "[" * 100000,
    "a lever that is no name": json.dumps({"version": 1, "instance": None, "entries": [entry(what="/etc/shadow")]}),
    "a path": json.dumps({"version": 1, "instance": None, "entries": [entry(what="files", where="/etc/shadow")]}),
    "a climb": json.dumps(
        {"version": 1, "instance": None, "entries": [entry(what="files", where="/etc/tmpfiles.d/nearmetal-../x.conf")]}
    ),
    "an original that we never keep": json.dumps(
        {"version": 1, "instance": None, "entries": [entry(what="files", where=FILE, original="f /etc/x")]}
    ),
    "two words": json.dumps({"version": 1, "instance": None, "entries": [entry(original="tsc\nxen")]}),
    "a number": json.dumps({"version": 1, "instance": None, "entries": [entry(original=5)]}),
    "names that are no texts": json.dumps({"version": 1, "instance": None, "entries": [entry(boot_id=5)]}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_journal(host: FakeKernel, call: Call, name: str) -> None:
    folder = Path(host.root) / "var/lib/nearmetal"
    folder.mkdir(mode=0o700)
    (folder / "journal.json").write_text(HOSTILE[name])
    before = everything(host)
    for main in (clocksource.main, restore.main):
        options = {"source": "tsc"} if main is clocksource.main else {}
        failed = call(main, host, **options)
        assert failed["failed"]
        assert JOURNAL in failed["msg"]
        assert "\n" not in failed["msg"]
    assert everything(host) == before


def test_a_symbolic_link_where_our_directory_should_be(host: FakeKernel, call: Call, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (Path(host.root) / "var/lib/nearmetal").symlink_to(elsewhere)
    failed = call(clocksource.main, host, source="tsc")
    assert "/var/lib/nearmetal is a symbolic link" in failed["msg"]
    assert list(elsewhere.iterdir()) == []
    assert current(host) == "xen"


def test_a_directory_that_others_may_write(host: FakeKernel, call: Call) -> None:
    folder = Path(host.root) / "var/lib/nearmetal"
    folder.mkdir()
    folder.chmod(0o777)
    failed = call(clocksource.main, host, source="tsc")
    assert "/var/lib/nearmetal can be written by users other than root" in failed["msg"]
    assert current(host) == "xen"


def test_a_foreign_file_of_our_name_is_never_overwritten(host: FakeKernel, call: Call) -> None:
    place = Path(host.root) / FILE.lstrip("/")
    place.write_text("w /sys/kernel/x - - - - 1\n")
    failed = call(clocksource.main, host, source="tsc")
    assert FILE in failed["msg"]
    assert place.read_text() == "w /sys/kernel/x - - - - 1\n"
    assert current(host) == "xen"


def test_a_leftover_of_a_killed_run_stops_no_later_run(host: FakeKernel, call: Call) -> None:
    folder = Path(host.root) / "var/lib/nearmetal"
    folder.mkdir(mode=0o700)
    (folder / ".journal.json.new").write_text('{"versi')
    assert call(clocksource.main, host, source="tsc")["changed"]


def test_a_run_killed_before_its_write_is_still_restorable(host: FakeKernel, call: Call) -> None:
    """The journal says tsc was intended; the kernel still has the original, or the value of the run before."""
    call(clocksource.main, host, source="tsc", persist=False)
    journal = Path(host.root) / JOURNAL.lstrip("/")
    content = json.loads(journal.read_text())
    content["entries"][0]["ours"] = ["tsc", "hpet"]  # killed on the way from tsc to hpet
    journal.write_text(json.dumps(content))
    call(restore.main, host)
    assert current(host) == "xen"
