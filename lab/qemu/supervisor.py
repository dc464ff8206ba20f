# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The process above a host's QEMU: `python3 -m lab.qemu.supervisor` in the host's folder.

A reset inside a QEMU with several threads can leave a guest that stays silent, so the guest's reset ends QEMU, and a
fresh QEMU starts on the same disks, at the same port, with the devices plugged in meanwhile. In every other case the
supervisor ends with QEMU, and QEMU ends with the supervisor. A guest runs once its QEMU reports events: a reset before
that would be taken for the end.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from lab import process
from lab.error import LabError
from lab.qemu import plugged
from lab.qemu.monitor import FIRST_ADDRESS, Channel

COMMAND = "command.json"
QEMU = "qemu.json"
PROGRAM = (sys.executable, "-m", "lab.qemu.supervisor")
ENVIRONMENT = {"PYTHONPATH": str(Path(__file__).resolve().parents[2])}
INTERPRETER = Path(sys.executable).resolve().name
_RESETS = ("guest-reset", "host-qmp-system-reset")
_FREE_PORT = re.compile(r"hostfwd=tcp:127\.0\.0\.1:0-([0-9.]*):22")
# Another program can hold the port for a moment between two QEMUs.
_STARTS = 120
_PAUSE_SECONDS = 1.0


def write(folder: Path, first: Sequence[str], again: Sequence[str]) -> None:
    """What a supervisor in this folder starts: QEMU's program with its arguments, and those after a reset."""
    (folder / COMMAND).write_text(json.dumps([[*first], [*again]]), encoding="utf-8")


def qemu(folder: Path) -> tuple[int, int]:
    """The process id of the QEMU that runs in a folder, and when it started; zeros before the first one."""
    try:
        pid, started = json.loads((folder / QEMU).read_text(encoding="ascii"))
    except FileNotFoundError:
        return 0, 0
    return pid, started


def main() -> int:
    """Run QEMU, again after each reset; its exit status."""
    first, again = json.loads(Path(COMMAND).read_text(encoding="utf-8"))
    machine = Machine(first)
    if machine.answers:
        machine.channel.execute("cont")
    reason = machine.run()
    while reason in _RESETS:
        machine = restarted([_FREE_PORT.sub(machine.with_port, word) for word in again])
        reason = machine.run()
    return machine.status


def restarted(command: Sequence[str]) -> Machine:
    """A machine after a reset, as soon as its ports are free."""
    for _number in range(_STARTS):
        machine = Machine(command)
        if machine.answers:
            for name, arguments in plugged.commands(Path()):
                machine.channel.execute(name, **arguments)
            machine.channel.execute("cont")
            return machine
        machine.run()
        time.sleep(_PAUSE_SECONDS)
    return machine


class Machine:
    """One QEMU, from its start to its end; its guest waits for `cont`."""

    def __init__(self, command: Sequence[str]) -> None:
        own_end, machine_end = socket.socketpair()
        events = ["-chardev", f"socket,id=events,fd={machine_end.fileno()}", "-mon", "chardev=events,mode=control"]
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", *command, "-S", "-no-reboot", *events],
            pass_fds=[machine_end.fileno()],
        )
        machine_end.close()
        beside = Path(f"{QEMU}.new")
        ticks = process.start_ticks(self._process.pid) or 0
        beside.write_text(json.dumps([self._process.pid, ticks]), encoding="ascii")
        beside.rename(QEMU)
        self.channel = Channel(own_end)
        self.ports: dict[str, int] = {}
        try:
            self.channel.greet()
            self.ports = self.channel.ports()
            self.answers = True
        except (LabError, OSError):
            self.answers = False

    def with_port(self, forward: re.Match[str]) -> str:
        """A forwarded port as this machine has it, where QEMU was to choose a free one."""
        return f"hostfwd=tcp:127.0.0.1:{self.ports[forward[1] or FIRST_ADDRESS]}-{forward[1]}:22"

    def run(self) -> str:
        """Wait until QEMU ends; the reason that QEMU gives."""
        reason = ""
        for event in self.channel.events():
            if event.get("event") == "SHUTDOWN":
                reason = event["data"]["reason"]
        self._process.wait()
        return reason

    @property
    def status(self) -> int:
        """Its exit status."""
        return self._process.wait()


if __name__ == "__main__":
    sys.exit(main())
