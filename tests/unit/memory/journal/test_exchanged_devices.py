# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Another NIC or disk takes the place of a tuned one: the originals of the old device aren't those of the new one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.modules import restore, tune

from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import fresh

Call = Callable[..., Dict[str, Any]]
JOURNAL = "var/lib/nearmetal/journal.json"
NIC = "sys/class/net/ens6"
WANTED = {
    "network_stack": {
        "interfaces": [{"name": "ens6", "tx_queue": {"length": 2000}, "rx_ring": "2048"}],
        "persist": False,
    },
    "network_irq": {"interfaces": [{"name": "ens6", "rps": "0-1"}], "persist": False},
}
DISK = {"name": "nvme9n1", "device": "0000:00:1b.0", "model": "Amazon Elastic Block Store"}


@pytest.fixture
def host(tmp_path: Path) -> FakeKernel:
    """Two NICs of four queues, and an EBS volume beside those of the host."""
    host = fresh(tmp_path, "nitro_big")
    attach(host, "vol0aaa")
    return host


def attach(host: FakeKernel, serial: str) -> None:
    host.disks.attach(DISK)
    (Path(host.root) / "sys/block/nvme9n1/wwid").write_text(f"nvme.1d0f-{serial}-01\n")


def read(host: FakeKernel, path: str) -> str:
    return (Path(host.root) / path).read_text().strip()


def tuned(call: Call, host: FakeKernel, **concerns: Any) -> None:
    done = call(tune.main, host, concerns=concerns)
    assert not done.get("failed"), done["msg"]
    assert done["changed"]


def test_restore_leaves_a_new_nic_alone_and_reports_it(host: FakeKernel, call: Call) -> None:
    tuned(call, host, **WANTED)
    host.nics.exchange("ens6", host.hardware)
    (Path(host.root) / NIC / "tx_queue_len").write_text("500\n")
    host.nics.rings["ens6"][2] = 4096
    checked = call(restore.main, host, check=True)
    done = call(restore.main, host)
    assert not done.get("failed"), done["msg"]
    assert [action for action in done["actions"] if action["what"] != "wanted"] == []
    assert read(host, f"{NIC}/tx_queue_len") == "500"
    assert host.nics.rings["ens6"][2] == 4096
    for result in (checked, done):
        reasons = [f"{finding['concern']} {finding['where']}: {finding['reason']}" for finding in result["findings"]]
        for concern in WANTED:
            assert any(
                reason.startswith(f"{concern} 0000:00:06.0") and "not the device" in reason for reason in reasons
            ), reasons
    assert not (Path(host.root) / JOURNAL).exists()


@pytest.mark.parametrize(
    ("driver", "assigned", "same"), [("ixgbevf", 3, True), ("ixgbevf", 0, False), ("ena", 3, False)]
)
def test_a_virtual_function_that_made_a_given_address_its_own_is_the_same_device(
    driver: str, assigned: int, same: bool, host: FakeKernel, call: Call
) -> None:
    """ixgbevf does so whenever it resets, as for new rings; ENA never does."""
    link = Path(host.root) / NIC / "device/driver"
    link.unlink()
    link.symlink_to(f"../../../bus/pci/drivers/{driver}")
    (Path(host.root) / NIC / "addr_assign_type").write_text(f"{assigned}\n")
    tuned(call, host, network_stack=WANTED["network_stack"])
    host.nics.addresses["0000:00:06.0"] = bytes.fromhex("0a0000000001")
    done = call(restore.main, host)
    assert any("not the device" in finding["reason"] for finding in done["findings"]) is not same
    assert read(host, f"{NIC}/tx_queue_len") == ("1000" if same else "2000")


def test_the_command_on_the_host_reports_it_too(
    host: FakeKernel, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    tuned(call, host, network_stack=WANTED["network_stack"])
    host.nics.exchange("ens6", host.hardware)
    assert command(["restore"], host) == 0
    assert "not the device" in capsys.readouterr().out
    assert read(host, f"{NIC}/tx_queue_len") == "1000"


def test_a_new_nic_that_is_tuned_has_its_own_originals(host: FakeKernel, call: Call) -> None:
    tuned(call, host, **WANTED)
    host.nics.exchange("ens6", host.hardware)
    (Path(host.root) / NIC / "tx_queue_len").write_text("500\n")
    host.nics.rings["ens6"][2] = 4096
    tuned(call, host, **WANTED)
    assert read(host, f"{NIC}/tx_queue_len") == "2000"
    assert host.nics.rings["ens6"][2] == 2048
    done = call(restore.main, host)
    assert not done.get("failed"), done["msg"]
    assert read(host, f"{NIC}/tx_queue_len") == "500"
    assert host.nics.rings["ens6"][2] == 4096
    assert not (Path(host.root) / JOURNAL).exists()


def test_a_renamed_nic_is_not_a_new_nic(host: FakeKernel, call: Call) -> None:
    tuned(call, host, network_stack=WANTED["network_stack"])
    host.nics.rename("ens6", "eth1")
    done = call(restore.main, host)
    assert "not the device" not in json.dumps(done)
    assert read(host, "sys/class/net/eth1/tx_queue_len") == "1000"


def test_a_journal_without_device_identities_loses_nothing(host: FakeKernel, call: Call) -> None:
    tuned(call, host, **WANTED)
    place = Path(host.root) / JOURNAL
    journal = json.loads(place.read_text())
    assert any(entry.pop("device") for entry in journal["entries"])
    place.write_text(json.dumps(journal))
    done = call(restore.main, host)
    assert not done.get("failed"), done["msg"]
    assert read(host, f"{NIC}/tx_queue_len") == "1000"
    assert host.nics.rings["ens6"][2] == 1024
    assert not place.exists()


@pytest.mark.parametrize("serial", ["vol0aaa", "vol0bbb"])
def test_a_volume_at_the_place_of_another_is_left_alone(host: FakeKernel, call: Call, serial: str) -> None:
    tuned(call, host, block_storage={"disks": [{"kind": "ebs", "nomerges": 2}], "persist": False})
    host.disks.detach("nvme9n1")
    attach(host, serial)
    host.write_value("/sys/block/nvme9n1/queue/nomerges", "2\n")  # set by somebody else, or by nearmetal
    done = call(restore.main, host)
    assert not done.get("failed"), done["msg"]
    assert read(host, "sys/block/nvme9n1/queue/nomerges") == ("0" if serial == "vol0aaa" else "2")
    assert ("not the device" in json.dumps(done)) == (serial != "vol0aaa")
    assert read(host, "sys/block/nvme0n1/queue/nomerges") == "0"


def test_a_volume_whose_name_can_no_longer_be_read_is_the_same_one(host: FakeKernel, call: Call) -> None:
    """Its serial or its number in this boot can't be compared with the name in the journal."""
    folder = Path(host.root) / "sys/block/nvme9n1"
    (folder / "diskseq").write_text("9\n")
    tuned(call, host, block_storage={"disks": [{"kind": "ebs", "nomerges": 2}], "persist": False})
    (folder / "wwid").unlink()
    done = call(restore.main, host)
    assert "not the device" not in json.dumps(done)
    assert read(host, "sys/block/nvme9n1/queue/nomerges") == "0"


def test_a_volume_that_our_rules_set_is_never_reported_as_left_alone(host: FakeKernel, call: Call) -> None:
    tuned(call, host, block_storage={"disks": [{"kind": "ebs", "nomerges": 2}]})
    host.disks.detach("nvme9n1")
    attach(host, "vol0bbb")
    host.write_value("/sys/block/nvme9n1/queue/nomerges", "2\n")  # as udev does by our rules
    done = call(restore.main, host)
    assert not done.get("failed"), done["msg"]
    assert read(host, "sys/block/nvme9n1/queue/nomerges") == "0"
    assert "not the device" not in json.dumps(done)


def of_another(result: Dict[str, Any]) -> "set[str]":
    """The concerns with a finding about a place that another device has taken."""
    return {finding["concern"] for finding in result["findings"] if "ens6 is not the device" in finding["reason"]}


def test_a_later_run_names_the_exchanged_device_once(host: FakeKernel, call: Call) -> None:
    tuned(call, host, **WANTED)
    host.nics.exchange("ens6", host.hardware)
    other = {"network_stack": {"somaxconn": 8192, "persist": False}}
    checked = call(tune.main, host, check=True, concerns=other)
    done = call(tune.main, host, concerns=other)
    assert not done.get("failed"), done["msg"]
    assert of_another(checked) == of_another(done) == {"network_stack"}
    again = call(tune.main, host, concerns=other)
    assert not again["changed"]
    assert of_another(again) == set()
    assert of_another(call(restore.main, host, concerns=["network_irq"])) == {"network_irq"}


def test_a_run_of_another_concern_forgets_no_original(host: FakeKernel, call: Call) -> None:
    tuned(call, host, network_stack=WANTED["network_stack"])
    host.nics.exchange("ens6", host.hardware)
    tuned(call, host, hugepages={"thp": "never"})
    assert of_another(call(restore.main, host, concerns=["hugepages"])) == set()
    assert of_another(call(restore.main, host)) == {"network_stack"}
    assert not (Path(host.root) / JOURNAL).exists()


def test_a_dropped_knob_is_taken_back_on_a_volume_attached_later(host: FakeKernel, call: Call) -> None:
    tuned(call, host, block_storage={"disks": [{"kind": "ebs", "nomerges": 2, "read_ahead_kb": 256}]})
    host.disks.attach({**DISK, "name": "nvme8n1", "device": "0000:00:1c.0"})
    nomerges, read_ahead = (f"sys/block/nvme8n1/queue/{attribute}" for attribute in ("nomerges", "read_ahead_kb"))
    assert (read(host, nomerges), read(host, read_ahead)) == ("2", "256"), "udev did what our rules say"
    wanted = {"block_storage": {"disks": [{"kind": "ebs", "read_ahead_kb": 256}]}}
    checked = call(tune.main, host, check=True, concerns=wanted)
    tuned(call, host, **wanted)
    assert (read(host, nomerges), read(host, read_ahead)) == ("0", "256")
    assert any(action["where"].startswith("0000:00:1c.0") for action in checked["actions"])
    assert not call(tune.main, host, concerns=wanted)["changed"]
    assert not call(restore.main, host).get("failed")
    assert read(host, read_ahead) == "128"
    assert not (Path(host.root) / JOURNAL).exists()


@pytest.mark.parametrize("exchanged", [True, False])
def test_the_dead_man_timer_gives_no_nic_the_values_of_another(
    host: FakeKernel, call: Call, capsys: pytest.CaptureFixture[str], exchanged: bool
) -> None:
    rings = {"interfaces": [{"name": "ens6", "rx_ring": "2048"}]}
    done = call(tune.main, host, concerns={"network_stack": rings}, confirm_within=120)
    assert done["confirm_within"] == 120
    if exchanged:
        host.nics.exchange("ens6", host.hardware)
        host.nics.rings["ens6"][2] = 4096
    assert command(["expire", "dead-man"], host) == 0
    assert host.nics.rings["ens6"][2] == (4096 if exchanged else 1024)
    assert ("ens6 is not the device" in capsys.readouterr().out) == exchanged
    assert not (Path(host.root) / "var/lib/nearmetal/wanted.json").exists(), "nobody confirmed it"


def test_a_disruptive_restore_of_a_knob_waits_for_a_confirmation(host: FakeKernel, call: Call) -> None:
    rings = {"interfaces": [{"name": "ens6", "rx_ring": "2048", "tx_queue": {"length": 2000}}], "persist": False}
    tuned(call, host, network_stack=rings)
    assert command(["confirm"], host) == 0
    other = {"network_stack": {"interfaces": [{"name": "ens6", "tx_queue": {"length": 2000}}], "persist": False}}
    done = call(tune.main, host, concerns=other, confirm_within=120)
    assert done["confirm_within"] == 120
    assert [action["disruptive"] for action in done["actions"] if action["what"] == "network.rings"] == [True]
    assert host.nics.rings["ens6"][2] == 1024
    assert command(["expire", "dead-man"], host) == 0
    assert host.nics.rings["ens6"][2] == 2048, "as it was before anybody had to confirm"
    done = call(restore.main, host)
    assert not done.get("failed"), done["msg"]
    assert host.nics.rings["ens6"][2] == 1024, "the original isn't lost"
    assert not (Path(host.root) / JOURNAL).exists()


@pytest.mark.parametrize("device", ["x" * 300, 7, None, "\u001b[2J"])
def test_a_malformed_device_is_damage(host: FakeKernel, call: Call, device: object) -> None:
    tuned(call, host, network_stack=WANTED["network_stack"])
    place = Path(host.root) / JOURNAL
    journal = json.loads(place.read_text())
    journal["entries"][0]["device"] = device
    place.write_text(json.dumps(journal))
    before = place.read_bytes()
    assert "an original of network_stack isn't what nearmetal wrote" in call(restore.main, host)["msg"]
    assert place.read_bytes() == before
