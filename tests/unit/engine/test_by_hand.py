# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands that a plan shows do what the run does: a shell runs them, and a second fake host is compared."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine import by_hand
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.registry import LEVERS
from ansible_collections.nearmetal.ec2.plugins.modules import tune

from tests.support.boot_trees import amazon_2, debian, rhel
from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import fresh
from tests.unit.memory.test_elements import state

Call = Callable[..., Dict[str, Any]]
# The shell writes values for the kernel to a log, because only the fake kernel knows what follows from them.
PRELUDE = """set -eu
kernel() { printf '%s\\t%s\\n' "$1" "$(cat)" >> "$LOG"; }
sysctl() { printf '/proc/sys/%s\\t%s\\n' "$(echo "${2%%=*}" | tr . /)" "${2#*=}" >> "$LOG"; }
ethtool() { printf 'ethtool\\t%s\\n' "$*" >> "$LOG"; }
systemctl() { :; }
udevadm() { :; }
grub-mkconfig() { :; }
"""
CASES: Dict[str, Tuple[str, Dict[str, Any]]] = {
    "a workload on Nitro": ("nitro_big", {"workload": "in_memory_database"}),
    "a workload on Xen": ("xen_hvm", {"workload": "web"}),
    "a workload on an old kernel": ("nitro_old_kernel", {"workload": "cache"}),
    "a workload on metal": ("metal", {"workload": "low_latency"}),
    "threads": ("metal", {"concerns": {"smt": {"threads": "disabled"}}}),
    "pages": (
        "nitro_big",
        {"concerns": {"hugepages": {"pages": [{"size": "2M", "count": 128}], "method": "runtime"}}},
    ),
    "queues": ("nitro_big", {"concerns": {"network_irq": {"policy": "spread", "rps": "0-1", "rfs": "32768"}}}),
    "memory": ("nitro", {"concerns": {"memory": {"dirty": "268435456", "ksm": "enabled", "aio_max_nr": 1048576}}}),
    "disks": ("metal", {"concerns": {"block_storage": {"scheduler": "mq-deadline", "read_ahead_kb": 256}}}),
}


def below(root: Path, line: str) -> str:
    """The line with files below the root, and what it writes to the kernel handed to the function of that name."""
    if re.match(r"echo .* > '?/(sys|proc)/|for ", line):
        return re.sub(r" > ([^;]+)", r" | kernel \1", line)
    return re.sub(r"(?<= )/", f"{root}/", line) if re.match(r"(mkdir|cat|chmod|rm|echo) ", line) else line


def executed(host: FakeKernel, lines: List[str], root: Path) -> List[str]:
    """Run the lines below the host's root; returns the calls of ethtool."""
    log = root / "log"
    log.touch()
    script = PRELUDE + "\n".join(below(root, line) for line in lines)
    subprocess.run(["bash", "-c", script], env={"LOG": str(log), "PATH": "/usr/bin:/bin"}, check=True)
    calls = []
    for path, text in (line.split("\t") for line in log.read_text().splitlines()):
        if path == "ethtool":
            calls.append(text)
        else:
            host.write_value(path, f"{text}\n")
    log.unlink()
    return calls


def tuned(host: FakeKernel) -> Dict[str, str]:
    """What the kernel has, and the files of the distribution's folders, without nearmetal's own unit and journal."""
    own = re.compile(r"var/|etc/systemd/|etc/default/|etc/udev/rules.d/90-nearmetal.rules|boot/")
    return {path: text for path, text in state(host).items() if not own.match(path)}


@pytest.mark.parametrize("case", CASES)
def test_the_commands_leave_a_host_as_tune_does(case: str, tmp_path: Path, call: Call) -> None:
    name, options = CASES[case]
    by_hand, by_tune = fresh(tmp_path / "by_hand", name), fresh(tmp_path / "by_tune", name)
    before = tuned(by_hand)
    shown = call(tune.main, by_hand, check=True, show="commands", **options)
    assert not shown.get("failed"), shown["msg"]
    assert tuned(by_hand) == before
    calls = executed(by_hand, shown["commands"], tmp_path / "by_hand")
    assert calls == [] or case.startswith("a workload"), calls
    done = call(tune.main, by_tune, **options)
    assert not done.get("failed"), done["msg"]
    assert done["actions"]
    assert tuned(by_hand) == tuned(by_tune)


DRIVERS = {
    "queues": ("nitro_big", {"network_irq": {"queues": 2}}, "ethtool -L ens6 combined 2"),
    "rings": ("nitro_big", {"network_stack": {"rx_ring": 2048}}, "ethtool -G ens6 rx 2048"),
    "moderation": ("nitro_big", {"network_stack": {"adaptive_rx": "disabled"}}, "ethtool -C ens6 adaptive-rx off"),
}
MKCONFIG = "echo 'GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT tsc=reliable\"' >> "
LOADERS: Dict[str, Tuple[Callable[[Path], FakeKernel], List[str]]] = {
    "Debian": (
        debian,
        [
            "mkdir -p /etc/default/grub.d",
            f"{MKCONFIG}/etc/default/grub.d/local.cfg",
            "grub-mkconfig -o /boot/grub/grub.cfg",
        ],
    ),
    "Amazon Linux 2": (
        amazon_2,
        ["mkdir -p /etc/default", f"{MKCONFIG}/etc/default/grub", "grub2-mkconfig -o /boot/grub2/grub.cfg"],
    ),
    "RHEL 9": (lambda root: rhel(root, 9), ["grubby --update-kernel=ALL --args=tsc=reliable"]),
}


@pytest.mark.parametrize("case", DRIVERS)
def test_what_a_driver_sets_is_shown_as_a_call_of_ethtool(case: str, tmp_path: Path, call: Call) -> None:
    name, concerns, line = DRIVERS[case]
    shown = call(tune.main, fresh(tmp_path, name), check=True, show="commands", concerns=concerns)
    assert line in shown.get("commands", ()), shown["msg"]


@pytest.mark.parametrize("loader", LOADERS)
def test_kernel_arguments_are_shown_as_the_distribution_sets_them(loader: str, tmp_path: Path, call: Call) -> None:
    make, lines = LOADERS[loader]
    wanted = {"clocksource": {"tsc_reliable": "enabled"}}
    shown = call(tune.main, make(tmp_path), check=True, show="commands", concerns=wanted)
    assert [line for line in shown["commands"] if not line.startswith("#")] == lines


def test_every_step_has_its_reason_above_it(tmp_path: Path, call: Call) -> None:
    wanted = {"clocksource": {"source": "hpet", "persist": False}}
    shown = call(tune.main, fresh(tmp_path, "metal"), check=True, show="commands", concerns=wanted)
    comment, line = shown["commands"]
    assert comment.startswith("# clocksource.source: ")
    assert line == "echo hpet > /sys/devices/system/clocksource/clocksource0/current_clocksource"


def test_commands_need_check_mode(tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "nitro")
    before = state(host)
    done = call(tune.main, host, show="commands", workload="base")
    assert done["failed"]
    assert "run with --check" in done["msg"]
    assert state(host) == before


def test_names_from_the_host_are_words_of_the_shell(tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "nitro_big")
    (tmp_path / "sys/class/net/ens5").rename(tmp_path / "sys/class/net/$(reboot)")
    wanted = {"network_stack": {"tx_queue": {"length": 5000}}}
    shown = call(tune.main, host, check=True, show="commands", concerns=wanted)
    assert "echo 5000 > '/sys/class/net/$(reboot)/tx_queue_len'" in shown["commands"], shown["commands"]


def test_a_mount_with_a_hyphen_has_the_name_that_systemd_demands(tmp_path: Path, call: Call) -> None:
    wanted = {"hugepages": {"mount": {"path": "/srv/huge-pages"}}}
    shown = call(tune.main, fresh(tmp_path, "nitro_big"), check=True, show="commands", concerns=wanted)
    (enable,) = [line for line in shown["commands"] if line.startswith("systemctl enable")]
    said = subprocess.run(
        ["bash", "-c", f"systemctl() {{ echo $3; }}; {enable}"], capture_output=True, text=True, check=True
    )
    assert said.stdout == "srv-huge\\x2dpages.mount\n"


def test_the_command_on_the_host_shows_them_too(tmp_path: Path, call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    host = fresh(tmp_path, "nitro_big")
    call(tune.main, host, concerns={"network_irq": {"rps": "0-1"}})
    for queue in (tmp_path / "sys/class/net/ens5/queues").glob("rx-*/rps_cpus"):
        queue.write_text("0000\n")
    assert command(["plan", "--commands"], host) == 0
    assert "echo 00000003 > /sys/class/net/ens5/queues/rx-0/rps_cpus" in capsys.readouterr().out.splitlines()


def test_and_for_a_captured_host(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["capture"], fresh(tmp_path / "host", "nitro_big")) == 0
    capture = tmp_path / "host.json"
    capture.write_text(capsys.readouterr().out)
    assert command(["plan", "--from", str(capture), "--workload", "web", "--commands"]) == 0
    assert "sysctl -w net.ipv4.tcp_slow_start_after_idle=0" in capsys.readouterr().out.splitlines()


def test_the_page_about_audits_shows_commands_as_they_are_printed(tmp_path: Path, call: Call) -> None:
    page = (Path(__file__).parents[3] / "docs/audit.md").read_text()
    shown_there = page.partition("each below its reason:\n\n```text\n")[2].partition("```")[0].splitlines()
    wanted = {"clocksource": {"source": "auto", "persist": False}, "network_stack": {"somaxconn": 8192}}
    shown = call(tune.main, fresh(tmp_path, "xen_hvm"), check=True, show="commands", concerns=wanted)
    assert shown["commands"] == shown_there


def test_every_place_has_a_command_except_what_nearmetal_alone_installs() -> None:
    none = by_hand.commands.dispatch(object)
    without = {lever.what for lever in LEVERS.values() if by_hand.commands.dispatch(type(lever)) is none}
    assert without == {"unit.agent", "unit.enabled"}
