# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit on the host: when it is installed, what it does at boot, how it is switched off and removed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.requests import restore_requests, tune_requests
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.result import contract
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.run import Conditions, run
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.session import Origin
from ansible_collections.nearmetal.ec2.plugins.module_utils._host import bundle, installed
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.unit import MAX_BYTES
from ansible_collections.nearmetal.ec2.plugins.module_utils._version import VERSION
from ansible_collections.nearmetal.ec2.plugins.modules import clocksource, network_irq, numa, restore, tune

from tests.support.fake_kernel import CLOCK, FakeKernel
from tests.support.hosts import files_of, lay_out

Call = Callable[..., Dict[str, Any]]
ROOT = Path(__file__).resolve().parents[4]
CURRENT = f"{CLOCK}/current_clocksource"
AVAILABLE = f"{CLOCK}/available_clocksource"
AGENT = "usr/local/lib/nearmetal/nearmetal.pyz"
SERVICE = "etc/systemd/system/nearmetal.service"
UNIT = {
    AGENT,
    f"usr/local/lib/nearmetal/{installed.cache_name()}",
    SERVICE,
    "etc/systemd/system/nearmetal.timer",
    "etc/systemd/system/timers.target.wants/nearmetal.timer",
    "etc/udev/rules.d/90-nearmetal.rules",
    "usr/local/sbin/nearmetal",
}
SECOND_BOOT = "99999999-0000-0000-0000-000000000000"


@pytest.fixture
def host(tmp_path: Path) -> FakeKernel:
    return FakeKernel(tmp_path, files_of("xen_hvm"))


def files(host: FakeKernel) -> Dict[str, bytes]:
    """Every file and link but the lock."""
    root = Path(host.root)
    paths = [path for path in root.rglob("*") if (path.is_symlink() or path.is_file()) and path.name != "lock"]
    return {
        str(path.relative_to(root)): str(path.readlink()).encode() if path.is_symlink() else path.read_bytes()
        for path in paths
    }


def current(host: FakeKernel) -> str:
    return (Path(host.root) / CURRENT.lstrip("/")).read_text().strip()


def boot(host: FakeKernel, boot_id: str = SECOND_BOOT) -> None:
    host.reboot(boot_id)
    host.written.clear()


def test_a_derived_value_installs_the_unit_and_restore_removes_it(host: FakeKernel, call: Call) -> None:
    before = files(host)
    checked = call(clocksource.main, host, check=True, source="auto")
    assert files(host) == before
    assert host.commands == []
    applied = call(clocksource.main, host, source="auto")
    assert checked["diff"] == applied["diff"]
    assert applied["msg"] == "clocksource: xen → tsc, no reboot; unit: installed"
    assert set(files(host)) - set(before) == UNIT | {"var/lib/nearmetal/journal.json", "var/lib/nearmetal/wanted.json"}
    assert host.commands[-1] == "systemctl start nearmetal.timer"
    for command_line in ("systemctl daemon-reload", "udevadm control --reload"):
        assert host.commands.count(command_line) == 1, "however many files of the unit are written"
    [row] = [action for action in applied["actions"] if action["concern"] == "unit"]
    assert {path[1:] for path in row["after"]} == UNIT - {f"usr/local/lib/nearmetal/{installed.cache_name()}"}
    assert set(row["before"].values()) == {None}
    again = call(tune.main, host, concerns={"clocksource": {"source": "auto"}})
    assert not again["changed"]
    assert [finding["status"] for finding in again["findings"]] == ["ok", "ok", "ok"]
    host.commands.clear()
    back = call(restore.main, host)
    assert back["msg"].endswith("unit: removed")
    assert [finding["knob"] for finding in back["findings"] if finding["concern"] == "unit"] == ["agent"]
    [row] = [action for action in back["actions"] if action["concern"] == "unit"]
    assert set(row["after"].values()) == {None}
    assert "systemctl stop nearmetal.timer" in host.commands
    assert host.commands.count("systemctl daemon-reload") == 1
    assert files(host) == before
    assert not (Path(host.root) / AGENT).parent.exists()


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("xen_hvm", {"source": "tsc"}),
        ("xen_hvm", {"source": "kernel"}),
        ("xen_hvm", {"source": "auto", "persist": False}),
        ("graviton", {"source": "auto"}),
    ],
)
def test_nothing_to_plan_at_boot_needs_no_unit(tmp_path: Path, call: Call, name: str, options: Dict[str, Any]) -> None:
    host = FakeKernel(tmp_path, files_of(name))
    assert not call(clocksource.main, host, **options).get("failed")
    assert not UNIT & set(files(host))


def test_a_literal_value_instead_of_auto_removes_the_unit(host: FakeKernel, call: Call) -> None:
    call(clocksource.main, host, source="auto")
    assert set(files(host)) >= UNIT
    changed = call(clocksource.main, host, source="tsc")
    assert changed["msg"] == "clocksource: persisted, no reboot; unit: removed"
    assert not UNIT & set(files(host))


def test_a_boot_is_planned_again_with_its_own_originals(host: FakeKernel, call: Call) -> None:
    call(clocksource.main, host, source="auto")
    boot(host)
    assert current(host) == "xen"
    assert command(["reapply", "--if-changed"], host) == 0
    assert current(host) == "tsc"
    journal = json.loads((Path(host.root) / "var/lib/nearmetal/journal.json").read_text())
    entry = next(entry for entry in journal["entries"] if entry["what"] == "clock.current")
    assert (entry["original"], entry["boot_id"]) == ("xen", SECOND_BOOT)
    assert not call(clocksource.main, host, source="auto")["changed"]
    call(restore.main, host)
    assert current(host) == "xen"


def test_the_same_disk_on_another_type_gets_that_types_plan(host: FakeKernel, call: Call) -> None:
    call(clocksource.main, host, source="auto")
    boot(host)
    lay_out(Path(host.root), files_of("nitro"))
    shutil.rmtree(Path(host.root) / "sys/hypervisor")
    host.write_value(CURRENT, "kvm-clock\n")
    assert command(["reapply", "--if-changed"], host) == 0
    assert current(host) == "tsc", "as AWS sets it on Nitro, whose processor promises a steady counter"


def test_a_host_of_one_node_is_planned_again_when_it_has_two(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("nitro"))
    call(numa.main, host, balancing="disabled")
    assert set(files(host)) >= UNIT
    boot(host)
    lay_out(tmp_path, files_of("metal"))
    balancing = tmp_path / "proc/sys/kernel/numa_balancing"
    balancing.write_text("1\n")
    assert command(["reapply", "--if-changed"], host) == 0
    assert balancing.read_text() == "0\n"


def test_the_timer_plans_only_what_changed(host: FakeKernel, call: Call) -> None:
    call(clocksource.main, host, source="auto")
    boot(host)
    command(["reapply", "--if-changed"], host)
    host.write_value(CURRENT, "hpet\n")
    host.written.clear()
    assert command(["reapply", "--if-changed"], host) == 0
    assert host.written == [], "the operator's hand between two events is left alone"
    (Path(host.root) / "proc/interrupts").write_text(
        "           CPU0       CPU1\n 24:          1          0   PCI-MSI 81920-edge      eth0-Tx-Rx-0\n"
    )
    assert command(["reapply", "--if-changed"], host) == 0
    assert current(host) == "tsc"
    host.written.clear()
    (Path(host.root) / "proc/interrupts").write_text(
        "           CPU0       CPU1\n 24:  999999999   77777777   PCI-MSI 81920-edge      eth0-Tx-Rx-0\n"
    )
    assert command(["reapply", "--if-changed"], host) == 0
    assert host.written == [], "counters aren't a change"
    flags = Path(host.root) / "sys/class/net/eth9/flags"
    flags.parent.mkdir(parents=True)
    for text, source in (("0x1002\n", "tsc"), ("0x1003\n", "tsc"), ("0x11003\n", "hpet")):
        flags.write_text(text)
        host.write_value(CURRENT, "hpet\n")
        assert command(["reapply", "--if-changed"], host) == 0
        assert current(host) == source, "a NIC came, was brought up, and carries traffic: the last is no change"


def test_a_reset_that_gives_the_same_interrupts_is_noticed(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("xen_hvm_4_sockets"))
    (nic,) = [path for path in (tmp_path / "sys/class/net").iterdir() if (path / "queues").exists()]
    placed = [tmp_path / f"proc/irq/{number}/smp_affinity_list" for number in (25, 26)]
    carrier = nic / "carrier_changes"
    carrier.write_text("2\n")
    assert not call(network_irq.main, host, policy="auto").get("failed")
    assert command(["reapply", "--if-changed"], host) == 0
    wanted = [path.read_text() for path in placed]

    def after_changes(changes: int) -> "list[str]":
        carrier.write_text(f"{changes}\n")
        for path in placed:
            path.write_text("0-15\n")
        assert command(["reapply", "--if-changed"], host) == 0
        return [path.read_text() for path in placed]

    assert "0-15\n" not in wanted
    assert after_changes(2) == ["0-15\n"] * 2, "nothing happened: the operator's hand is left alone"
    assert after_changes(4) == wanted, "its driver took the carrier away and gave it back"
    assert after_changes(4) == ["0-15\n"] * 2


@pytest.mark.parametrize("switch", ["file", "argument"])
def test_kill_switches(host: FakeKernel, call: Call, switch: str, capsys: pytest.CaptureFixture[str]) -> None:
    call(clocksource.main, host, source="auto")
    boot(host)
    if switch == "file":
        (Path(host.root) / "etc/nearmetal").mkdir()
        (Path(host.root) / "etc/nearmetal/disabled").touch()
    else:
        (Path(host.root) / "proc/cmdline").write_text("root=/dev/vda1 nearmetal=off quiet\n")
    assert command(["reapply"], host) == 0
    assert "switched off by" in capsys.readouterr().out
    assert host.written == []


def test_a_tampered_file_plans_nothing_of_that_concern(
    host: FakeKernel, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    call(clocksource.main, host, source="auto")
    stored = Path(host.root) / "var/lib/nearmetal/wanted.json"
    content = json.loads(stored.read_text())
    content["concerns"]["clocksource"]["options"]["source"] = "tsc; reboot"
    stored.write_text(json.dumps(content))
    boot(host)
    assert command(["reapply"], host) == 1
    assert "doesn't offer tsc; reboot" in capsys.readouterr().out
    content["concerns"]["clocksource"]["options"] = {"source": ["tsc"], "path": "/etc/shadow"}
    stored.write_text(json.dumps(content))
    assert command(["reapply"], host) == 1
    assert "/var/lib/nearmetal/wanted.json: 2 mistakes: • clocksource.path isn't an option" in capsys.readouterr().out
    assert host.written == []


def test_a_host_that_does_not_take_the_value_fails_the_unit(host: FakeKernel, call: Call) -> None:
    call(clocksource.main, host, source="auto")
    boot(host)
    host.moods[CURRENT] = "EIO"
    assert command(["reapply", "--if-changed"], host) == 1
    host.moods.clear()
    assert command(["reapply", "--if-changed"], host) == 0, "a failed plan isn't remembered as planned"
    assert current(host) == "tsc"


def test_a_concern_that_can_not_be_planned_is_tried_again_alone(
    tmp_path: Path, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    host = FakeKernel(tmp_path, files_of("nitro"))
    somaxconn, offered = tmp_path / "proc/sys/net/core/somaxconn", tmp_path / AVAILABLE.lstrip("/")
    sources = offered.read_text()
    wanted = {
        "clocksource": {"source": "kvm-clock"},
        "network_stack": {"somaxconn": 8192},
        "network_irq": {"rps": "auto"},
    }
    assert not call(tune.main, host, concerns=wanted).get("failed")
    boot(host)
    offered.write_text("tsc acpi_pm\n")
    host.write_value(CURRENT, "tsc\n")
    somaxconn.write_text("4096\n")
    assert command(["reapply", "--if-changed"], host) == 1
    assert somaxconn.read_text() == "8192\n", "the others are planned"
    for _round in range(2):
        somaxconn.write_text("1024\n")
        capsys.readouterr()
        assert command(["reapply", "--if-changed"], host) == 1, "the unit stays failed while it can't be planned"
        output = capsys.readouterr().out
        assert "doesn't offer kvm-clock" in output
        assert len(output.splitlines()) == 1, "it is tried once, and alone"
        assert somaxconn.read_text() == "1024\n", "the operator's hand between two events is left alone"
    offered.write_text(sources)
    assert command(["reapply", "--if-changed"], host) == 0
    assert (current(host), somaxconn.read_text()) == ("kvm-clock", "1024\n")
    host.write_value(CURRENT, "tsc\n")
    assert command(["reapply", "--if-changed"], host) == 0
    assert current(host) == "tsc", "nothing is left to try again"
    (tmp_path / "sys/class/net/eth9").mkdir()
    assert command(["reapply", "--if-changed"], host) == 0
    assert (current(host), somaxconn.read_text()) == ("kvm-clock", "8192\n"), "a change plans all of it"


def test_a_timer_that_does_not_start_takes_the_unit_back(host: FakeKernel, call: Call) -> None:
    host.moods["systemctl start nearmetal.timer"] = "Unit nearmetal.timer is masked."
    failed = call(clocksource.main, host, source="auto")
    assert failed["failed"]
    assert "nearmetal.timer is masked" in failed["errors"]["unit"]
    assert failed["msg"].startswith("unit: "), "what failed comes first"
    assert not UNIT & set(files(host))
    assert current(host) == "tsc", "independent concerns stay"


def test_a_foreign_service_of_our_name_is_never_overwritten(host: FakeKernel, call: Call) -> None:
    (Path(host.root) / SERVICE).write_text("[Service]\nExecStart=/bin/true\n")
    before = files(host)
    failed = call(clocksource.main, host, source="auto")
    assert f"/{SERVICE} exists and nearmetal didn't write it" in failed["msg"]
    assert files(host) == before


def tuned_by(host: FakeKernel, version: str, source: str = "auto") -> Dict[str, Any]:
    wanted = {"clocksource": {"source": source}}
    done = run(
        host,
        lambda known: tune_requests([], wanted, {}, known),
        conditions=Conditions(Origin("tune", version)),
    )
    return contract(done.outcomes)


def version_of(host: FakeKernel) -> str:
    return (Path(host.root) / AGENT).read_bytes().split(b"\n")[1].split()[3].decode()


def test_an_older_controller_never_replaces_a_newer_agent(host: FakeKernel) -> None:
    before = files(host)
    tuned_by(host, "0.9.0")
    assert version_of(host) == "0.9.0"
    assert tuned_by(host, "0.10.0")["changed"]
    assert version_of(host) == "0.10.0"
    older = tuned_by(host, "0.9.0")
    assert not older["changed"]
    assert version_of(host) == "0.10.0"
    assert "newer than 0.9.0: it is left alone" in older["findings"][-1]["reason"]
    run(
        host,
        lambda known: restore_requests(None, known),
        conditions=Conditions(Origin("restore", "0.9.0")),
    )
    assert files(host) == before


def test_baking_writes_files_alone_and_the_first_boot_tunes(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("nitro", {CURRENT: "acpi_pm\n"}))
    checked = call(tune.main, host, check=True, bake=True, workload="base")
    baked = call(tune.main, host, bake=True, workload="base")
    assert checked["diff"] == baked["diff"]
    assert current(host) == "acpi_pm"
    assert host.written == []
    assert host.commands == []
    assert set(files(host)) >= UNIT
    waits = [finding for finding in baked["findings"] if finding["status"] == "needs_reboot"]
    assert [finding["knob"] for finding in waits] == ["source"]
    kept = b"".join(data for path, data in files(host).items() if path.startswith("var/lib/nearmetal"))
    for identifier in (b"i-0123456789abcdef0", b"11111111-2222-3333-4444-555555555555"):
        assert identifier not in kept
    assert not call(tune.main, host, bake=True, workload="base")["changed"]
    assert command(["reapply"], host) == 0
    assert current(host) == "acpi_pm", "the baker itself stays as it is until it is started as an image"
    boot(host)
    (tmp_path / "sys/devices/virtual/dmi/id/board_asset_tag").write_text("i-0fedcba9876543210\n")
    (tmp_path / CURRENT.lstrip("/")).write_text("acpi_pm\n")
    assert command(["reapply", "--if-changed"], host) == 0
    assert current(host) == "tsc"
    call(restore.main, host)
    assert current(host) == "acpi_pm"
    assert not UNIT & set(files(host))


def test_the_command_restores_without_a_controller(host: FakeKernel, call: Call) -> None:
    before = files(host)
    call(tune.main, host, workload="base")
    assert command(["restore"], host) == 0
    assert files(host) == before
    assert command(["restore", "clocksouce"], host) == 1


def test_the_command_needs_root(host: FakeKernel, capsys: pytest.CaptureFixture[str]) -> None:
    host.root_user = False
    assert command(["status"], host) == 77, "not 1, which is drift"
    assert "sudo" in capsys.readouterr().err


def test_a_knob_of_tuned_is_left_to_it_unless_taken_over(host: FakeKernel, call: Call) -> None:
    root = Path(host.root)
    for path, text in {
        "sys/fs/cgroup/system.slice/tuned.service/cgroup.procs": "7\n",
        "etc/tuned/active_profile": "site\n",
        "etc/tuned/profiles/site/tuned.conf": f"[sysfs]\n{CURRENT}=hpet\n",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    refused = call(clocksource.main, host, source="tsc")
    assert refused["findings"][0]["status"] == "refused"
    assert "(profile site)" in refused["findings"][0]["reason"]
    assert current(host) == "xen"
    assert not (root / "etc/tmpfiles.d/nearmetal-clocksource.conf").exists()
    assert "is refused" in call(clocksource.main, host, source="tsc", strict=True)["msg"]
    taken = call(tune.main, host, concerns={"clocksource": {"source": "tsc"}}, owner_conflict="take_over")
    assert taken["changed"]
    assert current(host) == "tsc"


def test_the_agent_has_room_below_the_size_at_which_no_host_gets_the_unit() -> None:
    assert len(bundle.build(VERSION)) < MAX_BYTES - 16 * 1024
