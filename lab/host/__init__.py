# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A running lab host."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from lab import process, qemu
from lab.error import LabError
from lab.keys import HOST_ALIAS, Keys
from lab.qemu import supervisor
from lab.qemu.monitor import Monitor
from lab.qemu.pace import Pace
from lab.shape import Shape

STATE = "host.json"
QEMU_LOG = "qemu.log"
# Times the patience of the shape, and in the host's own seconds (lab/pace.py): those that a busy machine keeps it
# waiting don't count.
BOOT_LIMIT_SECONDS = 900.0
SILENCE_LIMIT_SECONDS = 180.0
_ENDS_WITHIN_SECONDS = 10.0
_STOPS_WITHIN_SECONDS = 10.0
_LOOK_SECONDS = 0.3
_FINISHED = "systemctl is-system-running --wait || systemctl list-units --failed --plain --no-legend; true"


@dataclasses.dataclass(frozen=True)
class Host:
    """What is needed to reach a host and to end it; kept in its folder as host.json.

    The process is the supervisor of its QEMU, which outlives a reset.
    """

    name: str
    shape: str
    address: str
    port: int
    user: str
    identity_file: str
    known_hosts_file: str
    folder: str
    pid: int
    started: int
    patience: int = 1

    @classmethod
    def read(cls, folder: Path) -> Host | None:
        """The host that was started in a folder; null when there is none."""
        try:
            return cls(**json.loads((folder / STATE).read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None

    @classmethod
    def of(cls, name: str, folder: Path, shape: Shape, pid: int, keys: Keys) -> Host:
        """A host whose QEMU was just started in a folder; its port isn't known yet."""
        return cls(
            name,
            shape.name,
            "127.0.0.1",
            0,
            "root",
            str(keys.identity),
            str(keys.known_hosts),
            str(folder),
            pid,
            process.start_ticks(pid) or 0,
            shape.patience,
        )

    def write(self) -> None:
        """Keep it in its folder; a reader sees all of it or nothing."""
        beside = Path(self.folder, f"{STATE}.new")
        beside.write_text(json.dumps(dataclasses.asdict(self), indent=2) + "\n", encoding="utf-8")
        beside.rename(beside.with_name(STATE))

    @property
    def runs(self) -> bool:
        """Whether it is up or between two QEMUs: its supervisor lives, not another process with its number."""
        return process.start_ticks(self.pid) == self.started

    @property
    def qemu_pid(self) -> int:
        """The process of its QEMU, another one after each reset; 0 before the first."""
        return supervisor.qemu(Path(self.folder))[0]

    def pace(self) -> Pace:
        """Its own seconds from now on."""
        return Pace(lambda: self.qemu_pid or self.pid)

    def ssh_options(self) -> list[str]:
        """Options of ssh without address, port and user: for an inventory too."""
        return [
            "-F",
            "none",
            "-i",
            self.identity_file,
            "-o",
            "IdentitiesOnly=yes",
            "-o",
            "BatchMode=yes",
            "-o",
            f"UserKnownHostsFile={self.known_hosts_file}",
            "-o",
            f"HostKeyAlias={HOST_ALIAS}",
            "-o",
            "StrictHostKeyChecking=yes",
            "-o",
            "LogLevel=ERROR",
            "-o",
            "ConnectTimeout=120",
            # A host that reboots may not close the connection, which would then wait forever.
            "-o",
            "ServerAliveInterval=15",
            "-o",
            "ServerAliveCountMax=8",
        ]

    def ssh(self, user: str | None = None) -> list[str]:
        """The ssh command up to the address."""
        return ["ssh", *self.ssh_options(), "-p", str(self.port), f"{user or self.user}@{self.address}"]

    def run(self, command: str, *, user: str | None = None, stdin: bytes | None = None, seconds: float = 300.0) -> str:
        """The output of a shell command on the host; a failure shows its errors, a hang the console."""
        # A file, because Python forgets what a pipe did not take before communicate() timed out for the first time.
        with tempfile.TemporaryFile() as given:
            given.write(stdin or b"")
            given.seek(0)
            program = subprocess.Popen(
                [*self.ssh(user), command], stdin=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            with program:
                try:
                    written = self._communicate(program, seconds)
                finally:
                    program.kill()
        if written is None:
            raise self.stuck(f"{command!r} did not end within {seconds:.0f} s")
        output, errors = (text.decode("utf-8", "replace") for text in written)
        if program.returncode:
            raise LabError(f"{self.name}: {command!r} failed with status {program.returncode}:\n{errors}{output}")
        return output

    def _communicate(self, program: subprocess.Popen[bytes], seconds: float) -> tuple[bytes, bytes] | None:
        """The output of a program; None when it doesn't end within so many of the host's seconds."""
        pace = self.pace()
        while pace.seconds() < seconds:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return program.communicate(timeout=_LOOK_SECONDS)
        return None

    def put(self, content: bytes, path: str, mode: str = "0644") -> None:
        """Write a file on the host."""
        self.run(f"install -m {mode} /dev/stdin {shlex.quote(path)}", stdin=content)

    def monitor(self) -> Monitor:
        """Its QEMU's monitor."""
        return Monitor(Path(self.folder, qemu.MONITOR))

    def dom0(self) -> Host:
        """The control domain below a Xen guest, where xl knows what the guest doesn't."""
        with self.monitor() as monitor:
            return dataclasses.replace(self, port=monitor.ssh_port(qemu.DOM0_ADDRESS))

    @property
    def console(self) -> Path:
        """The log of its serial console."""
        return Path(self.folder, qemu.SERIAL)

    def stuck(self, what: str) -> LabError:
        """An error with the end of the console and of QEMU's own complaints."""
        log = Path(self.folder, QEMU_LOG)
        complaints = [line for line in process.tail(log, 400).splitlines() if "TCG doesn't support" not in line]
        return LabError(
            f"{self.name}: {what}; the end of its console:\n{process.tail(self.console)}\n{self._processors()}"
            f"and of QEMU's messages:\n" + "\n".join(complaints[-10:])
        )

    def _processors(self) -> str:
        """Where its processors are at two moments: whether a silent guest spins, sleeps or makes progress."""
        try:
            with self.monitor() as monitor:
                return "".join(f"Its processors:\n  {monitor.processors()}\n" for _moment in range(2))
        except (LabError, OSError):
            return ""

    def set_clock(self) -> None:
        """Give the host this machine's time: a host from a snapshot wakes up in the past."""
        self.run(f"date --set=@{time.time():.3f} >/dev/null")

    def reached(self) -> None:
        """Wait until ssh answers."""
        self._patiently("ssh does not answer", self._answers)

    def booted(self) -> None:
        """Wait until it has booted and all its units are up."""
        self.reached()
        state = self.run(_FINISHED, seconds=BOOT_LIMIT_SECONDS * self.patience).strip()
        if state != "running":
            raise self.stuck(f"it booted, but: {state}")

    def reboot(self) -> None:
        """Reboot it through its own boot loader and wait until it has booted."""
        before = self.run("cat /proc/sys/kernel/random/boot_id").strip()
        try:
            self.run("systemctl --no-block reboot")
        except LabError as error:
            # It may end the session before the command has ended.
            if f"Connection to {self.address} closed" not in str(error):
                raise
        self._patiently("it does not come back from a reboot", lambda: self._boot_id() not in ("", before))
        self.booted()

    def _patiently(self, problem: str, ready: Callable[[], bool]) -> None:
        """Wait until `ready()` is true. Raises LabError after a silent console, not after a slow boot."""
        pace = self.pace()
        heard, said = 0.0, 0
        most, silence = BOOT_LIMIT_SECONDS * self.patience, SILENCE_LIMIT_SECONDS * self.patience
        while not ready():
            now = pace.seconds()
            size = self.console.stat().st_size
            if size != said:
                said, heard = size, now
            if not self.runs:
                raise self.stuck("its QEMU ended")
            if now - heard > silence:
                raise self.stuck(f"{problem} and its console is silent for {silence:.0f} s")
            if now > most:
                raise self.stuck(f"{problem} after {most:.0f} s")
            time.sleep(_LOOK_SECONDS)

    def wait(self, ready: Callable[[], bool], seconds: float, interval: float = process.INTERVAL_SECONDS) -> bool:
        """Poll until `ready()` is true, the host's own seconds are over, or it ended; whether it is ready."""
        return self.pace().wait(lambda: ready() or not self.runs, seconds, interval) and (self.runs or ready())

    def _answers(self) -> bool:
        try:
            with socket.create_connection((self.address, self.port), 5.0) as connection:
                return connection.recv(4) == b"SSH-"
        except OSError:
            return False

    def _boot_id(self) -> str:
        if not self._answers():
            return ""
        try:
            return self.run("cat /proc/sys/kernel/random/boot_id", seconds=60.0).strip()
        except LabError:
            return ""

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop its QEMU for the length of a with statement: its disk's file is as it would be if QEMU were killed.

        The monitor's `stop` would bring to the file what a power cut loses.
        """
        program = self.qemu_pid
        os.kill(program, signal.SIGSTOP)
        try:
            # What a thread has asked of the kernel is done before it stops.
            if not process.wait_until(lambda: process.stopped(program), _STOPS_WITHIN_SECONDS, 0.001):
                raise self.stuck(f"its QEMU did not stop within {_STOPS_WITHIN_SECONDS:.0f} s")
            yield
        finally:
            os.kill(program, signal.SIGCONT)

    def end(self) -> None:
        """End its QEMU and the supervisor, if they still run."""
        if self.runs:
            program, started = supervisor.qemu(Path(self.folder))
            # The supervisor leads a session of its own, in which nothing but its QEMU runs.
            os.killpg(self.pid, signal.SIGKILL)
            process.wait_until(
                lambda: not (self.runs or (started and process.start_ticks(program) == started)),
                _ENDS_WITHIN_SECONDS,
                0.01,
            )
        process.reap(self.pid)

    def down(self) -> None:
        """End the host and remove its files."""
        self.end()
        shutil.rmtree(self.folder)
