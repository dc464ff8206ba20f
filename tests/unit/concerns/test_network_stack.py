# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""network_stack's real main() on a fake kernel whose driver answers the ethtool ioctl."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.subcommands import OF_UNIT
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.requests import stored_requests
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.run import run
from ansible_collections.nearmetal.ec2.plugins.modules import network_irq, network_stack, restore, tune

from tests.support.fake_kernel import FakeKernel, everything
from tests.support.fresh_host import fresh
from tests.support.hosts import files_of

Call = Callable[..., Dict[str, Any]]
OPTIONS = {
    "rx_ring": "max",
    "adaptive_rx": "disabled",
    "rx_usecs": 0,
    "somaxconn": 8192,
    "port_range": "10240 65535",
    "mtu": 8900,
}
ROUTE = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\nens5\t00000000\t01\t0003\t0\t0\t0\t00000000\n"


def drivers(host: FakeKernel) -> Dict[str, Dict[str, Any]]:
    """The drivers' state, which is in no file."""
    nics = host.nics
    return {"channels": dict(nics.channels), "rings": {name: list(rings) for name, rings in nics.rings.items()}}


def ena(root: Path, **changes: str) -> FakeKernel:
    """Two ENA interfaces with the driver's own defaults."""
    host = FakeKernel(root, files_of("nitro_big", {**changes}))
    for name in ("ens5", "ens6"):
        host.nics.channels[name] = [8, 4]
        host.nics.rings[name] = [16384, 1024, 1024, 1024]
        host.nics.coalesce[name] = [20, 0, 0, 0, 64, 0, 0, 0, 0, 1, 0, *[0] * 11]
    return host


def test_check_apply_check_apply_restore(tmp_path: Path, call: Call) -> None:
    host = ena(tmp_path)
    before, held = everything(host), drivers(host)
    options = {**OPTIONS, "persist": False}
    checked = call(network_stack.main, host, check=True, **options)
    assert (everything(host), drivers(host)) == (before, held)
    applied = call(network_stack.main, host, **options)
    assert host.nics.rings == {"ens5": [16384, 1024, 16384, 1024], "ens6": [16384, 1024, 16384, 1024]}
    assert [settings[0] for settings in host.nics.coalesce.values()] == [0, 0]
    assert [settings[9] for settings in host.nics.coalesce.values()] == [0, 0]
    assert [settings[4] for settings in host.nics.coalesce.values()] == [64, 64]
    results = [checked, applied]
    results += [call(network_stack.main, host, check=check, **options) for check in (True, False)]
    assert [result["changed"] for result in results] == [True, True, False, False]
    assert checked["diff"] == applied["diff"]
    call(restore.main, host)
    assert (everything(host), drivers(host)) == (before, held)
    assert [settings[9] for settings in host.nics.coalesce.values()] == [1, 1]


def test_parameters_are_set_again_at_boot_by_a_file_that_goes_with_them(tmp_path: Path, call: Call) -> None:
    host = ena(tmp_path)
    call(network_stack.main, host, somaxconn=8192, slow_start_after_idle="disabled")
    path = tmp_path / "etc/sysctl.d/99-nearmetal-network_stack.conf"
    assert path.read_text().splitlines()[1:] == [
        "net.core.somaxconn = 8192",
        "net.ipv4.tcp_slow_start_after_idle = 0",
    ]
    left = call(network_stack.main, host, somaxconn=8192)
    assert "net.ipv4.tcp_slow_start_after_idle" in left["msg"]
    assert path.read_text().splitlines()[1:] == ["net.core.somaxconn = 8192"]
    assert (tmp_path / "proc/sys/net/ipv4/tcp_slow_start_after_idle").read_text() == "1\n"
    call(restore.main, host)
    assert not path.exists()
    assert (tmp_path / "proc/sys/net/core/somaxconn").read_text() == "4096\n"


def test_a_driver_that_refuses_takes_the_whole_concern_back(tmp_path: Path, call: Call) -> None:
    host = ena(tmp_path)
    before, held = everything(host), drivers(host)
    host.nics.stubborn["ens6"] = "EINVAL"
    failed = call(network_stack.main, host, rx_ring="4096", somaxconn=8192, persist=False)
    assert failed["failed"]
    assert "network_stack.rx_ring: the kernel refused rx 4096 of ens6, whose driver is ena (EINVAL" in failed["msg"]
    assert (everything(host), drivers(host)) == (before, held)


def test_a_workloads_refused_value_is_not_applicable_and_all_others_hold(tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "nitro_big")
    somaxconn = tmp_path / "proc/sys/net/core/somaxconn"
    somaxconn.write_text("128\n")
    host.nics.coalesce["ens6"] = [20, *[0] * 21]
    host.nics.stubborn["ens6"] = "EOPNOTSUPP"
    done = call(tune.main, host, workload="web")
    assert not done.get("failed"), done["msg"]
    assert somaxconn.read_text() == "4096\n"
    refused = [finding for finding in done["findings"] if finding["where"] == "0000:00:06.0/adaptive_rx"]
    assert [finding["status"] for finding in refused] == ["not_applicable"]
    assert "the kernel refused adaptive_rx 1 of ens6, whose driver is ena (" in refused[0]["reason"]
    again = call(tune.main, host, workload="web")
    assert (again["changed"], again["actions"], again.get("failed")) == (False, [], None)
    settled = {"network_stack": {"interfaces": [{"name": "ens6", "adaptive_rx": "disabled"}]}}
    for check in (False, True):
        named = call(tune.main, host, check=check, workload="web", concerns=settled)
    assert not named["changed"], "whoever names the driver's own value has an audit without it"
    del host.nics.stubborn["ens6"]
    assert call(tune.main, host, workload="web")["changed"], "another driver takes it"
    assert host.nics.coalesce["ens6"][9] == 1
    call(restore.main, host)
    assert host.nics.coalesce["ens6"][9] == 0
    assert somaxconn.read_text() == "128\n"


def test_a_refused_value_keeps_the_advice_about_the_same_setting(tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "nitro_big")
    for name in ("ens5", "ens6"):
        (tmp_path / f"sys/class/net/{name}/mtu").write_text("1500\n")
    (tmp_path / "sys/devices/virtual/dmi/id/product_name").write_text("c6in.32xlarge\n")  # has ENA Express
    host.moods["/sys/class/net/ens5/mtu"] = "EINVAL"
    wanted = {"network_stack": {"allow_disruptive": True}}
    done = call(tune.main, host, workload="hpc", concerns=wanted, confirm_within=90)
    place = "0000:00:05.0"
    mtu = {
        finding["status"]: finding["reason"]
        for finding in done["findings"]
        if (finding["knob"], finding["where"]) == ("mtu", place)
    }
    assert set(mtu) == {"not_applicable", "advice"}, mtu
    assert "the kernel refused mtu 9001 of ens5" in mtu["not_applicable"]
    assert "refused" not in mtu["advice"]


def test_a_users_refused_value_fails_with_the_option_and_the_driver(tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "nitro_big")
    host.nics.coalesce["ens6"] = [20, *[0] * 21]
    host.nics.stubborn["ens6"] = "EOPNOTSUPP"
    failed = call(tune.main, host, workload="web", concerns={"network_stack": {"rx_usecs": 50}})
    assert "network_stack.rx_usecs: the kernel refused " in failed["errors"]["network_stack"]
    assert "rx_usecs 50 of ens6, whose driver is ena (" in failed["errors"]["network_stack"]
    assert host.nics.coalesce["ens6"] == [20, *[0] * 21]
    host.nics.stubborn["ens6"] = "EIO"
    broken = call(tune.main, host, workload="web")
    assert "EIO" in broken["errors"]["network_stack"], "a failure is no refusal of the driver"


@pytest.mark.parametrize("module", [network_stack, network_irq])
def test_the_default_routes_interface_is_changed_only_with_the_option(module: Any, tmp_path: Path, call: Call) -> None:
    host = ena(tmp_path, **{"/proc/net/route": ROUTE})
    options = {"rx_ring": "max"} if module is network_stack else {"queues": "max"}
    held = drivers(host)
    spared = call(module.main, host, persist=False, **options)
    assert [finding["status"] for finding in spared["findings"]][:2] == ["refused", "changed"]
    assert host.nics.rings["ens5"] == held["rings"]["ens5"]
    assert host.nics.channels["ens5"] == held["channels"]["ens5"]
    done = call(module.main, host, persist=False, allow_disruptive=True, **options)
    assert [action["where"] for action in done["actions"] if action["disruptive"]] == [
        "0000:00:05.0/rx" if module is network_stack else "0000:00:05.0"
    ]


@pytest.mark.parametrize("upper", ["bond0", "br0", "ens5.10"])
def test_the_interface_below_the_default_routes_interface_needs_the_option_too(
    upper: str, tmp_path: Path, call: Call
) -> None:
    folder = f"/sys/class/net/{upper}"
    above = {f"{folder}/type": "1\n", f"{folder}/mtu": "9001\n", f"{folder}/lower_ens5/mtu": "9001\n"}
    host = ena(tmp_path, **{"/proc/net/route": ROUTE.replace("ens5", upper), **above})
    call(network_stack.main, host, persist=False, rx_ring="max", mtu=1500)
    call(network_irq.main, host, persist=False, queues="max")
    assert host.nics.orders == {"ens6": [0x11, 0x3D]}
    assert (tmp_path / "sys/class/net/ens5/mtu").read_text() == "9001\n"
    assert (tmp_path / "sys/class/net/ens6/mtu").read_text() == "1500\n"


def test_rings_beyond_the_driver_name_what_it_takes(tmp_path: Path, call: Call) -> None:
    assert "1 to 16384, or max" in call(network_stack.main, ena(tmp_path), rx_ring="65536")["msg"]


@pytest.mark.parametrize(("asked", "has"), [("5000", 4096), ("8191", 4096), ("100", 256), ("max", 16384)])
def test_rings_of_ena_are_the_power_of_two_that_its_driver_makes_of_the_number(
    asked: str, has: int, tmp_path: Path, call: Call
) -> None:
    host = ena(tmp_path)
    checked = call(network_stack.main, host, check=True, rx_ring=asked, persist=False)
    applied = call(network_stack.main, host, rx_ring=asked, persist=False)
    assert "failed" not in applied, applied["msg"]
    assert checked["diff"] == applied["diff"]
    assert host.nics.rings["ens5"][2] == has
    assert host.nics.orders == {"ens5": [0x11], "ens6": [0x11]}
    assert not call(network_stack.main, host, rx_ring=asked, persist=False)["changed"]


def test_ixgbevf_gets_what_its_driver_makes_of_the_number_or_the_user_reads_its_limits(
    tmp_path: Path, call: Call
) -> None:
    host = fresh(tmp_path, "xen_hvm")
    nic = next(iter(host.nics.rings))
    for options, limits in (
        ({"rx_ring": "63"}, f"rx_ring: {nic} can't have 63; it takes 64 to 4096, or max"),
        ({"rx_usecs": 1023}, f"rx_usecs: {nic} can't have 1023; it takes 0 to 1022"),
        ({"tx_usecs": 4000}, f"tx_usecs: {nic} can't have 4000; it takes 0 to 1022"),
    ):
        assert f"network_stack.{limits}" in call(network_stack.main, host, check=True, **options)["msg"]
    wanted = {"rx_ring": "101", "rx_usecs": 1022, "allow_disruptive": True}
    promised = call(network_stack.main, host, check=True, **wanted)["actions"]
    done = call(network_stack.main, host, **wanted)
    assert not done.get("failed"), done["msg"]
    assert done["actions"] == promised
    assert (host.nics.rings[nic][2], host.nics.coalesce[nic][0]) == (104, 1022)


def test_fields_of_one_table_are_one_order_to_the_driver_and_each_is_taken_back_by_itself(
    tmp_path: Path, call: Call
) -> None:
    host = ena(tmp_path)
    for name in ("ens5", "ens6"):
        host.nics.rings[name] = [16384, 1024, 1024, 512]
    both = {"rx_ring": "4096", "tx_ring": "max", "rx_usecs": 5, "adaptive_rx": "disabled", "persist": False}
    call(network_stack.main, host, **both)
    assert host.nics.rings["ens5"] == [16384, 1024, 4096, 1024]
    assert host.nics.orders == {"ens5": [0x11, 0x0F], "ens6": [0x11, 0x0F]}, "traffic stops once per table"
    del both["rx_ring"], both["rx_usecs"]
    left = call(network_stack.main, host, **both)
    assert {action["where"] for action in left["actions"] if action["what"].startswith("network.")} == {
        f"0000:00:0{slot}.0/{field}" for slot in (5, 6) for field in ("rx", "rx_usecs")
    }
    assert host.nics.rings["ens5"] == [16384, 1024, 1024, 1024]
    assert [host.nics.coalesce["ens5"][place] for place in (0, 9)] == [20, 0]
    call(restore.main, host)
    assert host.nics.rings["ens5"] == [16384, 1024, 1024, 512]
    assert [host.nics.coalesce["ens5"][place] for place in (0, 9)] == [20, 1]


def test_byte_queue_limits_of_each_queue_are_lifted_and_come_back(tmp_path: Path, call: Call) -> None:
    host = ena(tmp_path)
    before = everything(host)
    call(network_stack.main, host, tx_queue={"bql": "disabled"}, persist=False)
    limits = sorted(tmp_path.glob("sys/class/net/*/queues/tx-*/byte_queue_limits"))
    assert len(limits) == 8
    assert all((limit / "limit_min").read_text() == (limit / "limit_max").read_text() for limit in limits)
    call(restore.main, host)
    assert everything(host) == before


def test_the_unit_goes_on_without_an_interface_and_with_the_rings_of_a_smaller_type(tmp_path: Path, call: Call) -> None:
    host = ena(tmp_path)
    call(network_stack.main, host, rx_ring="8192", interfaces=[{"name": "ens6", "mtu": 1500}])
    host.reboot("22222222-2222-3333-4444-555555555555")
    host.nics.rings["ens5"] = [4096, 1024, 1024, 1024]
    (tmp_path / "sys/class/net/ens6").rename(tmp_path / "ens6")
    (outcome,) = run(host, stored_requests, conditions=OF_UNIT).outcomes
    assert outcome.done, outcome.error
    assert host.nics.rings["ens5"] == [4096, 1024, 4096, 1024]


def test_large_sends_are_cut_by_the_kernel_for_both_versions_of_ip(tmp_path: Path, call: Call) -> None:
    host = ena(tmp_path)
    on = {"tx-tcp-segmentation": True, "tx-generic-segmentation": True, "tx-tcp6-segmentation": True}
    host.nics.features = {name: dict(on) for name in ("ens5", "ens6")}
    applied = call(network_stack.main, host, offloads={"tso": "disabled"}, persist=False)
    assert not applied.get("failed"), applied["msg"]
    off = {"tx-tcp-segmentation": False, "tx-generic-segmentation": True, "tx-tcp6-segmentation": False}
    assert host.nics.features == {"ens5": off, "ens6": off}
    assert not call(network_stack.main, host, offloads={"tso": "disabled"}, persist=False)["changed"]
    call(restore.main, host)
    assert host.nics.features == {"ens5": on, "ens6": on}


def test_flows_are_steered_by_a_nic_that_can_and_not_by_another(tmp_path: Path, call: Call) -> None:
    host = ena(tmp_path)
    host.nics.features = {"ens5": {"rx-ntuple-filter": False}, "ens6": {"rx-gro": True}}
    applied = call(network_stack.main, host, offloads={"ntuple": "enabled"}, persist=False)
    found = {finding["where"].split("/")[0]: finding["status"] for finding in applied["findings"]}
    assert host.nics.features == {"ens5": {"rx-ntuple-filter": True}, "ens6": {"rx-gro": True}}
    assert sorted(status for status in found.values() if status != "advice") == ["changed", "not_applicable"]
    call(restore.main, host)
    assert host.nics.features == {"ens5": {"rx-ntuple-filter": False}, "ens6": {"rx-gro": True}}


def test_rings_do_not_move_what_the_same_run_has_placed(tmp_path: Path, call: Call) -> None:
    host = ena(tmp_path)
    host.nics.hints = {"ens5": "15", "ens6": "15"}
    wanted = {"network_irq": {"policy": "spread"}, "network_stack": {"rx_ring": "max"}}
    applied = call(tune.main, host, concerns=wanted)
    assert {finding["concern"] for finding in applied["findings"] if finding["status"] == "changed"} >= set(wanted)
    assert not call(tune.main, host, check=True, concerns=wanted)["changed"]


def test_a_workload_widens_what_the_host_had_before_and_not_what_an_earlier_run_set(tmp_path: Path, call: Call) -> None:
    somaxconn = tmp_path / "proc/sys/net/core/somaxconn"
    host = FakeKernel(tmp_path, files_of("nitro_big", {"/proc/sys/net/core/somaxconn": "65535\n"}))
    call(network_stack.main, host, somaxconn=1024)
    assert somaxconn.read_text().strip() == "1024", "a user's own value is exact"
    file = tmp_path / "etc/sysctl.d/99-nearmetal-network_stack.conf"
    assert "somaxconn = 1024" in file.read_text()
    call(tune.main, host, workload="web")
    assert somaxconn.read_text().strip() == "65535"
    assert "somaxconn" not in file.read_text(), "the workload's value would lower it at the next boot"
    again = call(tune.main, host, workload="web")
    assert (again["changed"], again["actions"]) == (False, [])


def test_a_users_rings_of_one_interface_are_exact_beside_a_workload(tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "nitro_big")
    host.nics.rings["ens6"][2] = 4096
    wanted = {"interfaces": [{"name": "ens6", "rx_ring": "512"}]}
    done = call(tune.main, host, workload="analytics", concerns={"network_stack": wanted})
    assert not done.get("failed"), done["msg"]
    assert host.nics.rings["ens6"][2] == 512
    assert [action["wanted_by"] for action in done["actions"] if action["knob"] == "rx_ring"] == ["user"]
    wanted["interfaces"][0]["rx_ring"] = "100000"
    assert "takes 1 to" in call(tune.main, host, workload="analytics", concerns={"network_stack": wanted})["msg"]


def test_a_workload_does_not_keep_a_users_earlier_higher_value(tmp_path: Path, call: Call) -> None:
    somaxconn = tmp_path / "proc/sys/net/core/somaxconn"
    host = FakeKernel(tmp_path, files_of("nitro_big", {"/proc/sys/net/core/somaxconn": "128\n"}))
    call(network_stack.main, host, somaxconn=65535)
    call(tune.main, host, workload="web")
    assert somaxconn.read_text().strip() == "4096"
    call(restore.main, host)
    assert somaxconn.read_text().strip() == "128"


def test_a_workload_takes_no_flows_of_the_operator_and_knows_its_own(tmp_path: Path, call: Call) -> None:
    table, flows = "/proc/sys/net/core/rps_sock_flow_entries", "/sys/class/net/eth0/queues/rx-0/rps_flow_cnt"
    hvm = {"/sys/hypervisor/guest_type": "HVM\n"}
    raised = FakeKernel(tmp_path / "raised", files_of("xen_pv", {**hvm, table: "131072\n", flows: "65536\n"}))
    done = call(tune.main, raised, workload="cache")
    assert (raised.text(flows), raised.text(table)) == ("65536\n", "131072\n")
    reasons = [finding["reason"] for finding in done["findings"] if finding["knob"] == "rfs"]
    assert all("the host already has room for more flows" in reason for reason in reasons), reasons
    plain = FakeKernel(tmp_path / "plain", files_of("xen_pv", hvm))
    call(network_irq.main, plain, rps="auto", rfs="65536")
    assert (plain.text(flows), plain.text(table)) == ("65536\n", "65536\n")
    call(tune.main, plain, workload="cache")
    assert (plain.text(flows), plain.text(table)) == ("32768\n", "32768\n"), "an earlier run is not the operator"


def test_a_users_flows_of_one_interface_take_none_from_those_that_a_workload_serves(tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "nitro_big")
    table = tmp_path / "proc/sys/net/core/rps_sock_flow_entries"
    table.write_text("131072\n")
    queues = sorted(tmp_path.glob("sys/class/net/ens6/queues/rx-*/rps_flow_cnt"))
    for queue in queues:
        queue.write_text("32768\n")
    named = [{"name": "ens5", "rfs": "4096"}]
    done = call(tune.main, host, workload="cache", concerns={"network_irq": {"interfaces": named}})
    assert not done.get("failed"), done["msg"]
    assert (table.read_text(), {queue.read_text() for queue in queues}) == ("131072\n", {"32768\n"})
    named.append({"name": "ens6", "rfs": "4096"})
    call(tune.main, host, workload="cache", concerns={"network_irq": {"interfaces": named}})
    assert table.read_text() == "4096\n", "no interface is left to the workload"


def test_an_interface_that_left_the_host_is_no_longer_reported(
    tmp_path: Path, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    host = ena(tmp_path)
    call(network_stack.main, host, rx_ring="max", mtu=8900, tx_queue={"length": 2000}, persist=False)
    host.replug({path: text for path, text in host.hardware.items() if "ens6" not in path and "00:06.0" not in path})
    capsys.readouterr()
    assert command(["status"], host) == 0
    assert "0000:00:06.0" not in capsys.readouterr().out


@pytest.mark.parametrize(("most", "remedy"), [(1024, "tx_ring: '1024'"), (512, "ena.large_llq: disabled")])
def test_a_transmit_ring_for_ena_express_needs_a_reboot_only_where_the_driver_takes_no_more(
    most: int, remedy: str, tmp_path: Path, call: Call
) -> None:
    host = ena(tmp_path, **{"/sys/devices/virtual/dmi/id/product_name": "c6in.8xlarge\n"})
    host.nics.rings["ens5"] = [4096, most, 1024, 512]
    findings = call(network_stack.main, host, check=True, ena={"check_express": True})["findings"]
    said = " ".join(finding["reason"] for finding in findings if finding["reason"].startswith("ens5: the"))
    assert f"the transmit ring has 512 descriptors, but ENA Express wants 1024: set {remedy}" in said
    assert "the receive ring has 1024 descriptors, but 4096 are advised: set rx_ring: '4096'" in said
