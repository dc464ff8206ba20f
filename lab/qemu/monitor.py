# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Talk to a running QEMU through its monitor socket (QMP)."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from lab.error import LabError
from lab.qemu import plugged

# The address that QEMU's DHCP gives to the first client.
FIRST_ADDRESS = "10.0.2.15"


class Channel:
    """A connection to a QEMU that speaks QMP."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._lines = connected.makefile("r", encoding="utf-8")
        self._early: list[dict[str, Any]] = []

    def greet(self) -> None:
        """Take the greeting; from then on QEMU takes commands and reports events."""
        self._lines.readline()
        self.execute("qmp_capabilities")

    def execute(self, command: str, **arguments: object) -> object:
        """Run a QMP command and give its result."""
        request = {"execute": command, "arguments": arguments}
        self._socket.sendall(json.dumps(request).encode() + b"\n")
        for line in self._lines:
            answer = json.loads(line)
            if "return" in answer:
                return answer["return"]
            if "error" in answer:
                raise LabError(f"QEMU refused {command}: {answer['error']['desc']}")
            self._early.append(answer)
        raise LabError(f"QEMU ended while it ran {command}")

    def human(self, line: str) -> str:
        """Run a line of QEMU's human monitor, such as "info network" or "device_del nic1"."""
        return str(self.execute(plugged.HUMAN, **{"command-line": line})).replace("\r\n", "\n")

    def events(self) -> Iterator[dict[str, Any]]:
        """What QEMU reports until it ends, what it reported before the answer to a command first."""
        while self._early:
            yield self._early.pop(0)
        with contextlib.suppress(OSError):
            for line in self._lines:
                yield json.loads(line)

    def ports(self) -> dict[str, int]:
        """The loopback ports that lead to an ssh, by the address behind them: QEMU bound free ones itself."""
        forward = r"HOST_FORWARD\]\s+\d+\s+127\.0\.0\.1\s+(\d+)\s+([0-9.]+)\s"
        return {address: int(port) for port, address in re.findall(forward, self.human("info usernet"))}

    def ssh_port(self, address: str = FIRST_ADDRESS) -> int:
        """The loopback port that leads to an address's ssh."""
        try:
            return self.ports()[address]
        except KeyError as error:
            raise LabError("QEMU forwards no port to the host's ssh") from error

    def processors(self) -> str:
        """Where each of the guest's processors stands, and whether it waits for an interrupt."""
        words = re.findall(r"^CPU#\d+|\b(?:RIP|EIP|PC)=\w+|\bHLT=\d", self.human("info registers -a"), re.M)
        return re.sub(r" (?=CPU#)", "\n  ", " ".join(words))

    def close(self) -> None:
        """End the connection."""
        self._lines.close()
        self._socket.close()


class Monitor(Channel):
    """One connection; use it in a with statement. QEMU serves one at a time, the next one waits."""

    def __init__(self, path: Path, timeout: float = 60.0) -> None:
        self._path = path
        self._timeout = timeout

    def __enter__(self) -> Monitor:
        connected = socket.socket(socket.AF_UNIX)
        connected.settimeout(self._timeout)
        # The address of a socket holds 107 bytes; a path through an open folder is always short enough.
        folder = os.open(self._path.parent, os.O_PATH)
        try:
            connected.connect(f"/proc/self/fd/{folder}/{self._path.name}")
        except OSError:
            connected.close()
            raise
        finally:
            os.close(folder)
        super().__init__(connected)
        try:
            self.greet()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def execute(self, command: str, **arguments: object) -> object:
        """Run a QMP command and return its result; devices that it plugs in stay plugged after a reset."""
        result = super().execute(command, **arguments)
        plugged.note(self._path.parent, (command, arguments))
        return result
