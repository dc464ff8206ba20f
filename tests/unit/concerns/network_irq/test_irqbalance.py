# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""network_irq beside a running irqbalance: configured once, restarted only on request, and taken back to the byte."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import Any, Callable, Dict, Optional, Sequence

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent import report
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.subcommands import OF_UNIT
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.requests import stored_requests
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.run import run
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.fingerprint import fingerprint
from ansible_collections.nearmetal.ec2.plugins.modules import network_irq, restore

from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of

Call = Callable[..., Dict[str, Any]]
FILE = "/etc/default/irqbalance"
TEXT = '# Mine.\nIRQBALANCE_BANNED_CPULIST=0\nIRQBALANCE_ARGS="--interval=5"\n# end'
SCRIPT = "/usr/local/sbin/nearmetal-irqbalance"
UNIT = """[Service]
EnvironmentFile=-/usr/lib/irqbalance/defaults.env
EnvironmentFile=-/etc/default/irqbalance
ExecStart=/usr/sbin/irqbalance --foreground $IRQBALANCE_ARGS
"""


class WithIrqbalance(FakeKernel):
    """systemd starts the daemon with what a shell makes of its file, and only on request."""

    def __init__(self, root: Path, name: str, options: str, changes: "Dict[str, Optional[str]]") -> None:
        daemon: "Dict[str, Optional[str]]" = {
            "/sys/fs/cgroup/system.slice/irqbalance.service/cgroup.procs": "399\n411\n412\n",
            "/proc/411/cmdline": "/bin/sh\0/usr/local/sbin/nearmetal-irqbalance\0/sys/devices\x0025\0",
            "/proc/412/cmdline": "/usr/sbin/irqbalance\0--foreground\0--interval=5\0",
            "/usr/lib/systemd/system/irqbalance.service": UNIT,
            "/usr/sbin/irqbalance": f"\x7fELF {options}",
            FILE: TEXT,
        }
        super().__init__(root, files_of(name, {**daemon, **changes}))

    def command(self, argv: Sequence[str], timeout: float = 60) -> str:
        answer = super().command(argv, timeout)
        if tuple(argv) == ("systemctl", "restart", "irqbalance.service"):
            self.start()
        return answer

    def start(self) -> None:
        """A new process."""
        line = f'. {self.real(FILE)}; printf "%s" "$IRQBALANCE_ARGS"'
        words = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True).stdout.split()
        text = "".join(f"{word}\0" for word in ["/usr/sbin/irqbalance", "--foreground", *words])
        Path(self.real("/proc/412/cmdline")).write_text(text)

    def arguments(self) -> Sequence[str]:
        return Path(self.real("/proc/412/cmdline")).read_text().split("\0")[2:-1]

    def read(self, path: str) -> str:
        return Path(self.real(path)).read_text()


@pytest.fixture
def host(tmp_path: Path) -> WithIrqbalance:
    return WithIrqbalance(tmp_path, "nitro", "policyscript banmod", {})


def status(result: Dict[str, Any], knob: str) -> "list[str]":
    return [finding["status"] for finding in result["findings"] if finding["knob"] == knob]


def pins(host: WithIrqbalance) -> "set[str]":
    lines = host.read("/proc/interrupts").splitlines()
    return {
        host.read(f"/proc/irq/{line.split(':')[0].strip()}/smp_affinity_list").strip()
        for line in lines
        if "Tx-Rx" in line
    }


def test_irqbalance_is_configured_and_nothing_is_placed_before_its_restart(host: WithIrqbalance, call: Call) -> None:
    checked = call(network_irq.main, host, check=True, policy="auto")
    assert host.read(FILE) == TEXT
    result = call(network_irq.main, host, policy="auto")
    assert checked["diff"] == result["diff"]
    assert host.read(FILE) == TEXT.replace('"--interval=5"', '"--interval=5 --banmod=ena"')
    assert status(result, "policy") == ["needs_restart"]
    assert len(pins(host)) == 1
    assert not [line for line in host.commands if "irqbalance" in line]
    assert not call(network_irq.main, host, policy="auto")["changed"]
    before = fingerprint(host)
    host.start()
    assert fingerprint(host) != before, "the timer would not notice the restart"
    placed = call(network_irq.main, host, policy="auto")
    assert [action["what"] for action in placed["actions"]] == ["network.affinity"]
    assert len(pins(host)) > 1
    back = call(restore.main, host)
    assert host.read(FILE) == TEXT
    assert len(pins(host)) == 1
    waits = [finding for finding in back["findings"] if finding["status"] == "needs_restart"]
    assert "systemctl restart irqbalance" in waits[0]["reason"]
    assert not back["reboot_required"]


def test_on_request_irqbalance_is_restarted_and_all_is_done_in_one_run(host: WithIrqbalance, call: Call) -> None:
    options = {"policy": "auto", "restart_irqbalance": True}
    checked = call(network_irq.main, host, check=True, **options)
    done = call(network_irq.main, host, **options)
    assert checked["diff"] == done["diff"]
    assert host.arguments() == ["--interval=5", "--banmod=ena"]
    assert len(pins(host)) > 1
    assert not call(network_irq.main, host, **options)["changed"]
    call(restore.main, host)
    assert host.read(FILE) == TEXT
    assert host.arguments() == ["--interval=5"]
    assert len(pins(host)) == 1


def test_at_a_boot_its_configuration_stays_and_what_is_up_is_placed(tmp_path: Path, call: Call) -> None:
    host = WithIrqbalance(tmp_path, "nitro_big", "policyscript", {})
    call(network_irq.main, host, policy="auto", restart_irqbalance=True)
    configured = host.read(FILE), host.read(SCRIPT)
    flags = {name: Path(host.real(f"/sys/class/net/{name}/flags")) for name in ("ens5", "ens6")}
    names = Path(host.real("/proc/412/cmdline"))
    told = names.read_text()
    for up, line in (((), told), (("ens5",), told), (("ens5", "ens6"), "(rqbalance)\0"), (("ens5", "ens6"), told)):
        names.write_text(line)
        for name, file in flags.items():
            file.write_text("0x1003\n" if name in up else "0x1002\n")
        numbers = [line.split(":")[0].strip() for line in host.read("/proc/interrupts").splitlines() if "Tx-Rx" in line]
        for number in numbers:
            Path(host.real(f"/proc/irq/{number}/smp_affinity_list")).write_text("0-15\n")
        state = report.collect(host)
        waits = [knob for knob in state["concerns"][0]["knobs"] if knob["status"] == "needs_restart"]
        assert not waits, f"{up}: {waits}"
        assert {name.partition(".")[2] for name in state["drift"]} <= {"policy"}, up
        run(host, stored_requests, conditions=OF_UNIT)
        placed = [host.read(f"/proc/irq/{number}/smp_affinity_list").strip() for number in numbers]
        assert sum(place.isdigit() for place in placed) == len(up) * len(numbers) // 2, up
        assert (host.read(FILE), host.read(SCRIPT)) == configured


def test_a_queue_that_cannot_be_placed_takes_the_ban_back(host: WithIrqbalance, call: Call) -> None:
    numbers = [line.split(":")[0].strip() for line in host.read("/proc/interrupts").splitlines() if "Tx-Rx" in line]
    host.moods[f"/proc/irq/{numbers[-1]}/smp_affinity_list"] = "EIO"
    failed = call(network_irq.main, host, policy="auto", restart_irqbalance=True)
    assert failed["failed"]
    assert host.read(FILE) == TEXT
    assert host.arguments() == ["--interval=5"]


def test_text_added_later_is_left_alone(host: WithIrqbalance, call: Call) -> None:
    call(network_irq.main, host, policy="auto")
    operators_text = TEXT.replace('"--interval=5"', '"--interval=5 --banmod=ena --journal"')
    Path(host.real(FILE)).write_text(operators_text)
    call(restore.main, host)
    assert host.read(FILE) == operators_text


def test_a_tampered_journal_brings_no_foreign_word_to_a_daemon_of_root(host: WithIrqbalance, call: Call) -> None:
    call(network_irq.main, host, policy="auto")
    journal = Path(host.real("/var/lib/nearmetal/journal.json"))
    journal.write_text(journal.read_text().replace('--interval=5\\"', '--policyscript=/tmp/x\\"', 1))
    failed = call(restore.main, host)
    assert "/tmp/x" not in host.read(FILE)
    assert failed.get("failed") or failed["errors"]


def ban(host: WithIrqbalance, device: str) -> str:
    """The script's output for a device, called as irqbalance calls it."""
    command = f"exec {shlex.quote(host.real(SCRIPT))} {shlex.quote(host.real(device))} 25"
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout


def test_the_script_of_an_older_version_bans_each_interface_but_those_left_to_it(tmp_path: Path, call: Call) -> None:
    host = WithIrqbalance(tmp_path, "nitro_big", "policyscript", {})
    options = {"policy": "auto", "interfaces": [{"name": "ens6", "policy": "irqbalance"}], "restart_irqbalance": True}
    call(network_irq.main, host, **options)
    assert host.arguments() == ["--interval=5", f"--policyscript={SCRIPT}"]
    places = {name: Path(host.real(f"/sys/class/net/{name}/device")).resolve().name for name in ("ens5", "ens6")}
    for name, place in {**places, "ens7": "0000:00:0a.0"}.items():
        Path(host.real(f"/sys/devices/pci0000:00/{place}/net/{name}")).mkdir(parents=True)
    Path(host.real("/sys/devices/pci0000:00/0000:00:0b.0/virtio3/net/eth9")).mkdir(parents=True)
    Path(host.real("/sys/devices/pci0000:00/0000:00:04.0/nvme")).mkdir(parents=True, exist_ok=True)
    answer = {place: ban(host, f"/sys/devices/pci0000:00/{place}") for place in places.values()}
    assert answer == {places["ens5"]: "ban=true\n", places["ens6"]: ""}
    assert ban(host, "/sys/devices/pci0000:00/0000:00:0a.0") == "ban=true\n", "an interface that came later"
    assert ban(host, "/sys/devices/pci0000:00/0000:00:0b.0") == "ban=true\n", "virtio is one level deeper"
    assert ban(host, "/sys/devices/pci0000:00/0000:00:04.0") == "", "a disk is irqbalance's"
    call(restore.main, host)
    assert not Path(host.real(SCRIPT)).exists()
    assert host.read(FILE) == TEXT
