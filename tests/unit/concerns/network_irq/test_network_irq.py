# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""network_irq's real main() on a fake kernel whose driver answers the ethtool ioctl."""

from __future__ import annotations

import json
import os
import struct
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Dict, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.subcommands import OF_UNIT
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.network_irq import compute
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.requests import stored_requests
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.run import run
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts import native_files, network_sample
from ansible_collections.nearmetal.ec2.plugins.modules import network_facts, network_irq, restore

from tests.support.fake_kernel import FakeKernel, everything
from tests.support.hosts import files_of, lay_out
from tests.support.kernel.cpus import numbers
from tests.support.kernel.nics import nic_files
from tests.unit.facts import large

Call = Callable[..., Dict[str, Any]]
ALL = {"policy": "auto", "rps": "auto", "rfs": "auto", "xps": "auto", "persist": False}
FLOWS = "/proc/sys/net/core/rps_sock_flow_entries"


def settings(host: FakeKernel) -> Dict[str, str]:
    """Every file except an interrupt's delivery, which only the next interrupt moves."""
    return {path: text for path, text in everything(host).items() if "/effective" not in path}


def pins(host: FakeKernel, name: str) -> List[str]:
    """Where each interrupt of a queue of the interface goes, in the order of /proc/interrupts."""
    root = Path(host.root)
    numbers = [
        line.split(":")[0].strip()
        for line in (root / "proc/interrupts").read_text().splitlines()
        if f"{name}-T" in line or f"{name}-input" in line or f"{name}-q" in line
    ]
    return [(root / f"proc/irq/{number}/smp_affinity_list").read_text().strip() for number in numbers]


def read(host: FakeKernel, path: str) -> str:
    return (Path(host.root) / path.lstrip("/")).read_text().strip()


@pytest.fixture
def xen(tmp_path: Path) -> FakeKernel:
    """Four sockets on Xen, ixgbevf with two queues on node 2: the host that needs helping CPUs most."""
    return FakeKernel(tmp_path, files_of("xen_hvm_4_sockets"))


def test_check_apply_check_apply_restore(xen: FakeKernel, call: Call) -> None:
    before = settings(xen)
    checked = call(network_irq.main, xen, check=True, **ALL)
    assert settings(xen) == before
    applied = call(network_irq.main, xen, **ALL)
    # Node 2 has the cores 4 and 5, with the second threads 12 and 13: a queue on each core.
    assert pins(xen, "ens3") == ["4", "5"]
    assert read(xen, FLOWS) == "0"
    results = [checked, applied, call(network_irq.main, xen, check=True, **ALL), call(network_irq.main, xen, **ALL)]
    assert [result["changed"] for result in results] == [True, True, False, False]
    assert checked["diff"] == applied["diff"]
    assert call(restore.main, xen)["changed"]
    assert settings(xen) == before


def test_few_queues_get_help_from_the_free_cores_of_their_node(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("xen_pv", {"/sys/hypervisor/guest_type": "HVM\n"}))
    before = settings(host)
    options = {**ALL, "policy": "spread"}
    result = call(network_irq.main, host, **options)
    assert result["changed"], result
    folder = "/sys/class/net/eth0/queues"
    # Two cores: the queue has CPU 0, CPU 1 shares no core with it.
    assert read(host, f"{folder}/rx-0/rps_cpus") == "00000002"
    assert read(host, f"{folder}/rx-0/rps_flow_cnt") == "32768"
    assert read(host, FLOWS) == "32768"
    assert not call(network_irq.main, host, **options)["changed"]
    call(restore.main, host)
    assert settings(host) == before


def test_more_and_fewer_queues_are_placed_in_the_same_run_and_taken_back(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("nitro_big"))
    host.nics.channels = {"ens5": [8, 4], "ens6": [8, 4]}
    for wanted, queues in (("max", 8), ("2", 2), ("1", 1), ("3", 3)):
        options = {"interfaces": [{"name": "ens5", "queues": wanted, "policy": "spread"}], "persist": False}
        checked = call(network_irq.main, host, check=True, **options)
        applied = call(network_irq.main, host, **options)
        assert checked["diff"] == applied["diff"]
        assert [action["disruptive"] for action in applied["actions"] if action["what"] == "network.queues"] == [True]
        assert host.nics.channels == {"ens5": [8, queues], "ens6": [8, 4]}
        assert len(set(map(int, pins(host, "ens5")))) == len(pins(host, "ens5")) == queues
        assert pins(host, "ens6") == ["0-15"] * 4
        assert not call(network_irq.main, host, **options)["changed"]
    call(restore.main, host)
    assert host.nics.channels["ens5"] == [8, 4]
    assert pins(host, "ens5") == ["0-15"] * 4


def test_a_reset_that_renews_the_vectors_is_planned_again(xen: FakeKernel, call: Call) -> None:
    call(network_irq.main, xen, **ALL)
    table = Path(xen.root) / "proc/interrupts"
    table.write_text(table.read_text().replace("  25:", " 325:").replace("  26:", " 326:"))
    for number in (325, 326):
        folder = Path(xen.root) / f"proc/irq/{number}"
        folder.mkdir()
        (folder / "smp_affinity_list").write_text("0-15\n")
        (folder / "effective_affinity_list").write_text("0\n")
    again = call(network_irq.main, xen, **ALL)
    assert [action["what"] for action in again["actions"]] == ["network.affinity"]
    assert pins(xen, "ens3") == ["4", "5"]


def test_a_renamed_interface_keeps_its_place_in_the_journal(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("nitro_big"))
    call(network_irq.main, host, **ALL)
    (tmp_path / "sys/class/net/ens6").rename(tmp_path / "sys/class/net/data0")
    assert not call(network_irq.main, host, **ALL)["changed"]
    call(restore.main, host)
    assert pins(host, "ens6") == ["0-15"] * 4


def test_an_interrupt_that_the_kernel_manages_fails_by_name_and_all_is_taken_back(xen: FakeKernel, call: Call) -> None:
    before = settings(xen)
    for mood in ("EIO", "EPERM"):
        xen.moods["/proc/irq/26/smp_affinity_list"] = mood
        failed = call(network_irq.main, xen, **ALL)
        assert "the kernel manages this interrupt itself" in failed["msg"]
        assert settings(xen) == before


def test_a_driver_that_refuses_a_number_of_queues_changes_nothing(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("nitro_big"))
    host.nics.channels = {"ens5": [8, 4], "ens6": [8, 4]}
    host.nics.stubborn["ens6"] = "EINVAL"
    before = settings(host)
    failed = call(network_irq.main, host, queues="6", persist=False)
    assert "the kernel refused queues 6 of ens6, whose driver is ena (EINVAL" in failed["msg"]
    assert host.nics.channels == {"ens5": [8, 4], "ens6": [8, 4]}
    assert pins(host, "ens5") == ["0-15"] * 4
    assert set(settings(host)) >= set(before)


def test_named_values_that_the_host_cannot_take_fail_with_what_it_could(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("nitro"))
    host.nics.channels = {"ens5": [8, 8]}
    cases: List[Dict[str, Any]] = [
        {"queues": "9", "says": "1 to 8, or max"},
        {"rps": "0-8", "says": "the online CPUs are 0-7"},
        {"rps": "all of them", "says": "network_irq.rps"},
        {"policy": "spread", "irq_cpus": "64", "says": "CPU 64 isn't online"},
        {"rfs": "many", "says": "number of flows"},
        {"interfaces": [{"name": "eth9", "queues": "2"}], "says": "this host has ens5"},
    ]
    for case in cases:
        says = case.pop("says")
        failed = call(network_irq.main, host, **case)
        assert failed["failed"], case
        assert says in failed["msg"], failed["msg"]


def test_allowances_are_differences(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("nitro"))
    host.nics.statistics["ens5"] = {"tx_timeout": 3, "pps_allowance_exceeded": 7, "conntrack_allowance_available": 400}

    def packets(count: float) -> None:
        counts = {f"/sys/class/net/ens5/statistics/{side}_packets": f"{count:.0f}\n" for side in ("rx", "tx")}
        lay_out(Path(host.root), counts)

    packets(3000)
    sample = call(network_facts.main, host)["ansible_facts"]["nearmetal"]["network"]["sample"]
    assert sample["packets"] == {"ens5": 6000}
    found = network_sample.observe(host, 5000, packets)
    assert (found["allowances"]["ens5"]["pps_allowance_exceeded"], found["packets"]) == (0, {"ens5": 4000})
    assert sample["allowances"] == {"ens5": {"pps_allowance_exceeded": 7, "conntrack_allowance_available": 400}}
    assert "0 to 60" in call(network_facts.main, host, sample_seconds=3600)["msg"]


def test_the_result_of_192_cpus_and_64_queues_is_small(tmp_path: Path, call: Call) -> None:
    nics = [
        {"name": f"ens{number}", "driver": "ena", "place": f"0000:00:0{number}.0", "queues": 32} for number in (5, 6)
    ]
    host = FakeKernel(tmp_path, {**large.host(192), **nic_files(192, nics), "/proc/cpuinfo": "flags\t\t: fpu\n"})
    result = call(network_irq.main, host, allow_not_ec2=True, **ALL)
    assert len(set(pins(host, "ens5") + pins(host, "ens6"))) == 64
    assert len(json.dumps(result)) < 64 * 1024
    assert [len(nic["queues"]) for nic in result["queue_map"]] == [32, 32]


def test_the_unit_plans_although_its_sandbox_shows_a_read_only_etc(
    xen: FakeKernel, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    call(network_irq.main, xen, policy="auto")
    for number in (25, 26):
        (Path(xen.root) / f"proc/irq/{number}/smp_affinity_list").write_text("0-15\n")
    monkeypatch.setattr(os, "statvfs", lambda _path: SimpleNamespace(f_flag=os.ST_RDONLY))
    run(xen, stored_requests, conditions=OF_UNIT)
    assert pins(xen, "ens3") == ["4", "5"]


def test_the_compute_cpus_are_rewritten_for_another_size_and_removed_with_the_policy(
    tmp_path: Path, call: Call
) -> None:
    host = FakeKernel(tmp_path, files_of("metal", {"/sys/devices/system/cpu/online": "0-15\n"}))
    path, generator = "/etc/nearmetal/compute_cpus", "/etc/systemd/system-generators/nearmetal-compute"
    call(network_irq.main, host, policy="dedicated", compute_units=["app.service"])
    assert read(host, path).splitlines()[1:] == ["COMPUTE_CPUS=0-3,5-11,13-15"]
    host.reboot("22222222-2222-3333-4444-555555555555")
    Path(host.real("/sys/devices/system/cpu/online")).write_text("0-14\n")
    outcome = run(host, stored_requests, conditions=OF_UNIT).outcomes[0]
    assert outcome.done, outcome.error
    assert read(host, path).splitlines()[1:] == ["COMPUTE_CPUS=0-3,5-11,13-14"]
    assert os.access(host.real(generator), os.X_OK)
    facts = call(network_facts.main, host)["ansible_facts"]["nearmetal"]["network"]
    assert facts["compute_cpus"] == "0-3,5-11,13-14"
    call(network_irq.main, host, policy="spread")
    assert not Path(host.real(path)).exists()
    assert not Path(host.real(generator)).exists()


def drop_ins(root: Path, cpus: str, online: str, units: str) -> "Dict[str, str]":
    """The generator's drop-ins, run as systemd runs it, on files of a folder in place of the host's."""
    (root / "cpus").write_text(f"# a comment\nCOMPUTE_CPUS={cpus}\n")
    (root / "online").write_text(online + "\n")
    text = compute.SCRIPT.format(units).replace(native_files.COMPUTE_CPUS, str(root / "cpus"))
    text = text.replace("/sys/devices/system/cpu/online", str(root / "online"))
    script, out = root / "generator", root / "out"
    script.write_text(text)
    script.chmod(0o755)
    subprocess.run([str(script), str(out), str(out), str(out)], check=True)
    return {str(path.relative_to(out)): path.read_text() for path in out.rglob("*.conf")}


def test_systemd_gets_drop_ins_for_a_list_that_fits_the_host(tmp_path: Path) -> None:
    fits = drop_ins(tmp_path, "0-3,5", "0-7", "a.service b@1.service")
    text = "[Service]\nCPUAffinity=\nCPUAffinity=0-3,5\n"  # not those of its own unit as well
    assert fits == {f"{unit}.d/90-nearmetal-compute.conf": text for unit in ("a.service", "b@1.service")}


def test_systemd_gets_no_drop_in_for_the_list_of_a_bigger_host(tmp_path: Path) -> None:
    assert drop_ins(tmp_path, "0-3,5-11", "0-7", "a.service") == {}


def test_an_interface_that_is_named_no_more_is_taken_back_alone(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("nitro_big"))
    both = [{"name": name, "policy": "spread"} for name in ("ens5", "ens6")]
    call(network_irq.main, host, interfaces=both, persist=False)
    assert "0-15" not in pins(host, "ens5") + pins(host, "ens6")
    kept = pins(host, "ens5")
    call(network_irq.main, host, interfaces=both[:1], persist=False)
    assert pins(host, "ens5") == kept
    assert pins(host, "ens6") == ["0-15"] * 4


def test_queues_that_somebody_removed_do_not_stop_restore(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("nitro_big"))
    host.nics.channels = {"ens5": [8, 4], "ens6": [8, 4]}
    call(network_irq.main, host, **ALL)
    host.set_driver("ens5", struct.pack("=9I", 0x3D, 0, 0, 0, 0, 0, 0, 0, 2))
    call(network_irq.main, host, **ALL)
    back = call(restore.main, host)
    assert not back["errors"]
    assert pins(host, "ens5")[:2] == ["0-15"] * 2
    assert pins(host, "ens6") == ["0-15"] * 4
    assert not (tmp_path / "var/lib/nearmetal").exists()


def test_queues_that_came_later_are_taken_back_too(tmp_path: Path, call: Call) -> None:
    hosts = []
    for name in ("tuned", "untouched"):
        (tmp_path / name).mkdir()
        host = FakeKernel(tmp_path / name, files_of("nitro_big"))
        host.nics.channels = {"ens5": [8, 4], "ens6": [8, 4]}
        if name == "tuned":
            call(network_irq.main, host, **{**ALL, "rps": "8-15", "persist": True})
        host.set_driver("ens5", struct.pack("=9I", 0x3D, 0, 0, 0, 0, 0, 0, 0, 8))
        hosts.append(host)
    tuned, untouched = hosts
    run(tuned, stored_requests, conditions=OF_UNIT)
    queues = "sys/class/net/ens5/queues"
    assert {(Path(tuned.root) / f"{queues}/rx-{queue}/rps_cpus").read_text() for queue in range(8)} == {"0000ff00\n"}
    assert not call(restore.main, tuned)["errors"]
    for path in (Path(untouched.root) / queues).rglob("*"):
        if path.is_file():
            name = path.relative_to(untouched.root)
            assert (Path(tuned.root) / name).read_text() == path.read_text(), name
    assert pins(tuned, "ens5") == pins(untouched, "ens5")


SMALLER: Dict[str, Dict[str, Any]] = {
    "an interface gone": {"interfaces": [{"name": "ens6", "xps": "kernel"}], "gone": "ens6", "ens5": "0-7"},
    "irq_cpus, some gone": {"irq_cpus": "6-15", "online": "0-7", "ens5": "6-7"},
    "irq_cpus, all gone": {"irq_cpus": "8-15", "online": "0-7", "rps": "2,12", "ens5": ""},
    "helpers gone": {"rps": "2,12", "xps": "0-15", "online": "0-7", "ens5": "0-7"},
    "fewer queues": {"queues": "8", "most": 4, "ens5": "0-15"},
}


@pytest.mark.parametrize("case", SMALLER)
def test_the_unit_goes_on_with_what_another_size_of_the_host_has(case: str, tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("nitro_big"))
    host.nics.channels = {"ens5": [8, 4], "ens6": [8, 4]}
    options = dict(SMALLER[case])
    lost, online, most = options.pop("gone", ""), options.pop("online", "0-15"), options.pop("most", 8)
    allowed = options.pop("ens5")
    assert "failed" not in call(network_irq.main, host, policy="spread", **options)
    host.reboot("22222222-2222-3333-4444-555555555555")
    for path in (tmp_path / "proc/irq").glob("*/smp_affinity_list"):
        path.write_text("0-15\n")
    (tmp_path / "sys/devices/system/cpu/online").write_text(f"{online}\n")
    if most < 8:
        for name in ("ens5", "ens6"):
            host.set_driver(name, struct.pack("=9I", 0x3D, 0, 0, 0, 0, 0, 0, 0, most))
            host.nics.channels[name] = [most, most]
    if lost:
        (tmp_path / f"sys/class/net/{lost}").rename(tmp_path / lost)
    (outcome,) = run(host, stored_requests, conditions=OF_UNIT).outcomes
    assert outcome.done, outcome.error
    placed = [int(cpu) for cpu in pins(host, "ens5")[:4] if cpu.isdigit()]
    assert (len(placed), set(placed) <= set(numbers(allowed))) == (4 if allowed else 0, True)
    assert any(lost in finding.reason and finding.knob == "interfaces" for finding in outcome.plan.findings) or not lost
    if "rps" in options:
        assert read(host, "/sys/class/net/ens5/queues/rx-0/rps_cpus") == "00000004"


# Without its type it could be a T2, which has as many CPUs and as much memory.
M3: Dict[str, Any] = {"instance_type": "m3.large", "persist": False}


@pytest.mark.parametrize("quiet", ["isolated", "nohz_full"])
def test_no_packet_is_given_to_cpus_that_the_command_line_keeps_free(quiet: str, tmp_path: Path, call: Call) -> None:
    files = {"/sys/devices/system/cpu/isolated": "\n", "/sys/devices/system/cpu/nohz_full": "(null)\n"}
    host = FakeKernel(tmp_path, files_of("xen_pv", {"/sys/hypervisor/guest_type": "HVM\n", **files}))
    assert read(host, "/sys/devices/system/cpu/online") == "0-1"
    assert call(network_irq.main, host, policy="spread", rps="1", **M3)["changed"]
    call(restore.main, host)
    (tmp_path / f"sys/devices/system/cpu/{quiet}").write_text("1\n")
    result = call(network_irq.main, host, policy="spread", rps="0-1", **M3)
    assert [(finding["knob"], finding["status"]) for finding in result["findings"]][:2] == [
        ("policy", "changed"),
        ("rps", "refused"),
    ]
    assert "CPU 1" in result["findings"][1]["reason"]
    assert pins(host, "eth0") + pins(host, "vif0") == ["0", "0"]
    assert "failed" not in call(network_irq.main, host, policy="spread", rps="auto", **M3)
    assert read(host, "/sys/class/net/eth0/queues/rx-0/rps_cpus") == "00000000"


def test_two_queues_whose_interrupts_have_one_name_get_a_cpu_each(tmp_path: Path, call: Call) -> None:
    """xen-netfront without split event channels names each of them after the interface."""
    files = files_of("xen_pv", {"/sys/hypervisor/guest_type": "HVM\n"})
    folder = "/sys/class/net/eth0/queues"
    files.update({f"{folder}/{name}": "00000000\n" for name in ("rx-1/rps_cpus", "tx-0/xps_cpus", "tx-1/xps_cpus")})
    line = "  {}:          0          0   xen-dyn-event      eth0\n"
    files["/proc/interrupts"] = "           CPU0       CPU1\n" + line.format(25) + line.format(26)
    host = FakeKernel(tmp_path, files)
    before = settings(host)
    assert call(network_irq.main, host, policy="spread", **M3)["changed"]
    assert sorted(read(host, f"/proc/irq/{number}/smp_affinity_list") for number in (25, 26)) == ["0", "1"]
    assert not call(network_irq.main, host, policy="spread", **M3)["changed"]
    call(restore.main, host)
    assert settings(host) == before


def test_a_queue_without_an_interrupt_of_its_own_stops_no_other(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("nitro_big"))
    table = tmp_path / "proc/interrupts"
    table.write_text("".join(line for line in table.read_text().splitlines(True) if "ens5-Tx-Rx-3" not in line))
    assert call(network_irq.main, host, policy="spread", **M3)["changed"]
    assert "0-15" not in pins(host, "ens5") + pins(host, "ens6")
    assert not call(network_irq.main, host, policy="spread", **M3)["changed"]


def test_cpus_for_interrupts_without_a_policy_are_refused_and_leave_the_placing_as_it_is(
    tmp_path: Path, call: Call
) -> None:
    host = FakeKernel(tmp_path, files_of("nitro_big"))
    call(network_irq.main, host, policy="spread", irq_cpus="0-7", persist=False)
    kept = pins(host, "ens5")
    assert "policy" in call(network_irq.main, host, irq_cpus="8-15", persist=False)["msg"]
    assert pins(host, "ens5") == kept
    named = [{"name": "ens5", "policy": "spread"}]
    assert call(network_irq.main, host, irq_cpus="8-15", interfaces=named, persist=False)["changed"]
    assert {int(cpu) for cpu in pins(host, "ens5")} <= set(range(8, 16))
