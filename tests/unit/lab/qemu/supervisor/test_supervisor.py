# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A QEMU that its guest resets is started again, and QEMU ends with its supervisor. Here without a disk.

tests/lab/hosts/test_lifecycle.py does the same with a kernel.
"""

from __future__ import annotations

import os
import re
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab import process, qemu
from lab.error import LabError
from lab.host import QEMU_LOG, Host
from lab.qemu import plugged, supervisor

PROGRAM = "qemu-system-x86_64"
COMMAND = [PROGRAM, "-nodefaults", "-display", "none", "-m", "64", "-qmp", f"unix:{qemu.MONITOR},server=on,wait=off"]
NIC = ["-netdev", "user,id=net0,restrict=on,hostfwd=tcp:127.0.0.1:0-:22", "-device", "virtio-net-pci,netdev=net0"]
SECONDS = 120.0


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Host]]:
    """Start QEMU under a supervisor: with `first` beside its arguments until the first reset."""
    hosts = []

    def begin(*first: str) -> Host:
        supervisor.write(tmp_path, [*COMMAND, *NIC, *first], [*COMMAND, *NIC])
        pid = process.launch(
            supervisor.PROGRAM, tmp_path / QEMU_LOG, outlive=False, cwd=tmp_path, env=supervisor.ENVIRONMENT
        )
        host = Host("a", "default", "127.0.0.1", 0, "root", "", "", str(tmp_path), pid, process.start_ticks(pid) or 0)
        hosts.append(host)
        assert host.wait(lambda: status(host) == "running", SECONDS), host.stuck("it did not start")
        return host

    yield begin
    for host in hosts:
        host.end()


def port(host: Host) -> int:
    """Where its ssh is forwarded to; 0 while no QEMU answers."""
    try:
        with host.monitor() as monitor:
            return monitor.ssh_port()
    except (OSError, LabError, ValueError):
        return 0


def reset(host: Host) -> None:
    """Reset it, and wait until the next QEMU runs its guest."""
    before = host.qemu_pid
    with host.monitor() as monitor:
        monitor.execute("system_reset")
    assert host.wait(lambda: host.qemu_pid != before and status(host) == "running", SECONDS), host.stuck("not back")


def status(host: Host) -> str:
    """What QEMU says of its guest."""
    try:
        return human(host, "info status").partition("VM status: ")[2].strip()
    except (OSError, LabError):
        return ""


def human(host: Host, line: str) -> str:
    with host.monitor() as monitor:
        return monitor.human(line)


def test_after_a_reset_another_qemu_has_the_same_port(start: Callable[..., Host]) -> None:
    host = start("-name", "first")
    forwarded = port(host)
    assert human(host, "info name") == "first\n"
    for _round in range(2):
        before = host.qemu_pid
        reset(host)
        assert process.start_ticks(before) is None
        assert port(host) == forwarded
        assert human(host, "info name") == ""
        assert host.runs


def test_it_waits_for_a_port_that_another_program_has_taken(
    start: Callable[..., Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    host = start()
    forwarded = port(host)
    before = host.qemu_pid
    # The supervisor stands still until another program has the port.
    os.kill(host.pid, signal.SIGSTOP)
    with host.monitor() as monitor:
        monitor.execute("system_reset")
    taken = socket.socket()
    assert process.wait_until(lambda: bound(taken, forwarded), SECONDS)
    taken.listen()
    os.kill(host.pid, signal.SIGCONT)
    log = Path(host.folder, QEMU_LOG)
    assert process.wait_until(lambda: "Could not set up host forwarding" in log.read_text("utf-8"), SECONDS)
    taken.close()
    assert host.wait(lambda: host.qemu_pid != before and port(host) == forwarded, SECONDS), log.read_text("utf-8")


def bound(listener: socket.socket, number: int) -> bool:
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", number))
    except OSError:
        return False
    return True


def test_what_was_plugged_is_there_after_a_reset_and_what_was_removed_is_not(start: Callable[..., Host]) -> None:
    host = start()
    with host.monitor() as monitor:
        monitor.execute("netdev_add", type="user", id="hot", restrict=True)
        monitor.execute("device_add", driver="virtio-net-pci", id="nic", netdev="hot", addr="0x8")
        monitor.human("drive_add 0 if=none,id=volume,driver=null-co,size=64M,read-zeroes=on")
        monitor.human("device_add virtio-blk-pci,id=disk,drive=volume,addr=0x9")
    reset(host)
    shown = human(host, "info qtree")
    assert 'dev: virtio-net-pci, id "nic"' in shown
    assert 'dev: virtio-blk-pci, id "disk"' in shown
    with host.monitor() as monitor:
        monitor.execute("device_del", id="nic")
        monitor.human("device_del disk")
    reset(host)
    shown = human(host, "info qtree")
    assert 'id "nic"' not in shown
    assert 'id "disk"' not in shown
    assert [name for name, _arguments in plugged.commands(Path(host.folder))] == ["netdev_add"]


def test_a_host_that_is_powered_off_stays_off(start: Callable[..., Host]) -> None:
    host = start()
    program = host.qemu_pid
    with host.monitor() as monitor:
        monitor.execute("quit")
    assert process.wait_until(lambda: not host.runs, SECONDS)
    assert process.start_ticks(program) is None


@pytest.mark.parametrize("how", ["end", "killed"])
def test_no_qemu_outlives_its_supervisor(start: Callable[..., Host], how: str) -> None:
    host = start()
    reset(host)
    program = host.qemu_pid
    if how == "end":
        host.end()
    else:
        os.kill(host.pid, signal.SIGKILL)
    assert process.wait_until(lambda: process.start_ticks(program) is None, SECONDS)
    assert not host.runs


def test_a_stuck_host_shows_where_its_processors_are(start: Callable[..., Host]) -> None:
    host = start("-smp", "2")
    shown = str(host.stuck("it says nothing"))
    assert len(re.findall(r"^  CPU#0 [RE]IP=[0-9a-f]+ HLT=[01]$", shown, re.MULTILINE)) == 2, shown
    assert len(re.findall(r"^  CPU#1 [RE]IP=[0-9a-f]+ HLT=[01]$", shown, re.MULTILINE)) == 2, shown
