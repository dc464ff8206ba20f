# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts are brought up and ended, isolated from each other and without a trace."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab import clock, host, process
from lab.error import LabError
from lab.host import Host, instance, inventory
from lab.progress import Progress

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def own_instances(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of hosts of this test's own; whatever a failing test leaves in it is ended."""
    folder = tmp_path / "instances"
    monkeypatch.setenv("NEARMETAL_LAB_INSTANCES", str(folder))
    yield folder
    for name in instance.names():
        instance.down(name)


@pytest.fixture
def shared_host() -> Iterator[Host]:
    with instance.running("default", "one") as running:
        yield running


def processes_that_mention(text: str) -> list[str]:
    """The command lines that hold a text; a process that ends while we look has none."""
    lines = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes() + (path / "environ").read_bytes()
            folder = str((path / "cwd").readlink())
        except OSError:
            continue
        if int(path.name) != os.getpid() and (text in words.decode("utf-8", "replace") or folder.startswith(text)):
            lines.append(words.decode("utf-8", "replace"))
    return lines


def interrupted(arguments: list[str], when: Callable[[], bool], environment: dict[str, str]) -> str:
    """The output of a lab command that gets Ctrl-C at a given moment."""
    command = subprocess.Popen(
        [sys.executable, "-m", "lab", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    reached = process.wait_until(lambda: when() or command.poll() is not None, 60.0, 0.01)
    command.send_signal(signal.SIGINT)
    output = command.communicate(timeout=60.0)[1]
    assert reached, f"the moment never came:\n{output}"
    assert command.returncode == 130, output
    return output


def test_two_hosts_are_apart_and_gone_after_down(own_instances: Path) -> None:
    with instance.running("default", "one") as running:
        two = instance.up("default", "two", outlive=False)
        assert running.port != two.port
        running.run("touch /root/only-here")
        assert two.run("ls /root").strip() == ""
        assert [host.name for host in instance.hosts()] == ["one", "two"]
        with pytest.raises(LabError, match="one is already up; log in: python3 -m lab ssh one"):
            instance.up("default", "one")
        two.down()
        assert running.run("ls /root").strip() == "only-here"
        assert instance.names() == ["one"]
    assert list(own_instances.iterdir()) == []
    assert [process.start_ticks(host.pid) for host in (running, two)] == [None, None]


def test_configurations_for_people_and_for_programs(shared_host: Host, tmp_path: Path) -> None:
    assert shared_host.run("sudo -n id -un", user="admin").strip() == "root"
    config = tmp_path / "config"
    config.write_text(inventory.ssh_config([shared_host]), encoding="utf-8")
    assert subprocess.check_output(["ssh", "-F", str(config), "one", "hostname"], text=True).strip() == "lab"
    hosts = tmp_path / "hosts.ini"
    hosts.write_text(inventory.ansible([shared_host]), encoding="utf-8")
    ping = ["ansible", "-i", str(hosts), "one", "-m", "ansible.builtin.ping"]
    assert '"pong"' in subprocess.check_output(ping, text=True)
    with shared_host.monitor() as monitor:
        assert monitor.human("info status").strip() == "VM status: running"
        with pytest.raises(LabError, match="QEMU refused no-such-command"):
            monitor.execute("no-such-command")


def test_its_clock_is_right_and_reading_it_asks_the_kernel_only_on_the_slow_source(shared_host: Host) -> None:
    before = time.time()
    shown = float(shared_host.run("date +%s.%N"))
    assert before - 5.0 < shown < time.time() + 5.0
    slow = clock.measure(shared_host)
    shared_host.run("echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource")
    fast = clock.measure(shared_host)
    assert (slow.source, fast.source) == ("hpet", "tsc")
    assert slow.clock_calls >= clock.READS
    assert fast.clock_calls == 0


def test_a_changed_command_line_takes_effect_after_a_reboot_through_the_boot_loader() -> None:
    with instance.running("burstable") as host:
        host.run("echo 'GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX lab.mark\"' > /etc/default/grub.d/99_mark.cfg")
        host.run("update-grub")
        host.reboot()
        assert host.run("cat /proc/cmdline").split()[-1] == "lab.mark"


def test_a_reboot_starts_another_qemu_at_the_same_port_with_what_was_plugged() -> None:
    with instance.running("burstable") as host:
        with host.monitor() as monitor:
            monitor.execute("netdev_add", type="user", id="hot", restrict=True)
            monitor.execute("device_add", driver="virtio-net-pci", id="nic", netdev="hot", addr="0x6")
        before = host.qemu_pid
        host.reboot()
        assert host.qemu_pid != before
        assert process.start_ticks(before) is None
        assert host.run("ls /sys/class/net").split() == ["ens5", "ens6", "lo"]


def test_a_dead_hosts_name_is_free_again(own_instances: Path) -> None:
    dead = instance.up("default", "one", outlive=False)
    os.kill(dead.pid, signal.SIGKILL)
    assert process.wait_until(lambda: not dead.runs, 10.0)
    with pytest.raises(LabError, match="no host called one is running"):
        instance.find("one")
    with instance.running("default", "one") as again:
        assert again.run("echo well").strip() == "well"
    process.reap(dead.pid)
    assert list(own_instances.iterdir()) == []


def test_ctrl_c_while_a_host_starts_leaves_nothing(own_instances: Path) -> None:
    def started() -> bool:
        return (own_instances / "one" / "host.json").exists()

    interrupted(["up", "default", "--as", "one"], started, {})
    assert list(own_instances.iterdir()) == []
    assert processes_that_mention(str(own_instances / "one")) == []


def test_ctrl_c_while_an_image_is_built_leaves_nothing(own_instances: Path, tmp_path: Path) -> None:
    images = tmp_path / "cache" / "images"

    def unpacking() -> bool:
        return any(images.glob(".*/tmp/mmdebstrap.*/usr"))

    interrupted(["up", "default"], unpacking, {"NEARMETAL_CACHE": str(tmp_path / "cache")})
    assert list(images.iterdir()) == []
    assert list(own_instances.iterdir()) == []
    assert processes_that_mention(str(tmp_path / "cache")) == []


def test_a_host_that_hangs_shows_its_console(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Of another size, so that it has no snapshot yet and must boot.
    own_shape = tmp_path / "mine.toml"
    own_shape.write_text('like = "burstable"\nabout = "never in time"\nmemory_mib = 320\n', encoding="utf-8")
    monkeypatch.setattr(host, "SILENCE_LIMIT_SECONDS", 0.2)
    with pytest.raises(
        LabError, match=r"^mine: ssh does not answer and its console is silent for 0 s; the end of its console:\n  "
    ):
        instance.up(str(own_shape), outlive=False, progress=Progress())
    assert instance.names() == []
