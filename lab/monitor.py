# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Talk to a running QEMU through its monitor socket (QMP)."""

from __future__ import annotations

import json
import os
import re
import socket
from pathlib import Path
from types import TracebackType

from lab.error import LabError

# The address that QEMU's DHCP gives to whoever asks first.
FIRST_ADDRESS = "10.0.2.15"


class Monitor:
    """One connection; use it in a with statement. QEMU serves one at a time, the next one waits."""

    def __init__(self, path: Path, timeout: float = 60.0) -> None:
        self._path = path
        self._timeout = timeout

    def __enter__(self) -> Monitor:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(self._timeout)
        # The address of a socket holds 107 bytes; a path through an open folder is always short enough.
        folder = os.open(self._path.parent, os.O_PATH)
        try:
            self._socket.connect(f"/proc/self/fd/{folder}/{self._path.name}")
        except OSError:
            self._socket.close()
            raise
        finally:
            os.close(folder)
        self._lines = self._socket.makefile("r", encoding="utf-8")
        self._lines.readline()
        self.execute("qmp_capabilities")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lines.close()
        self._socket.close()

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
        raise LabError(f"QEMU ended while it ran {command}")

    def human(self, line: str) -> str:
        """Run a line of QEMU's human monitor, such as "info network" or "device_del nic1"."""
        return str(self.execute("human-monitor-command", **{"command-line": line})).replace("\r\n", "\n")

    def ssh_port(self, address: str = FIRST_ADDRESS) -> int:
        """The loopback port that leads to an address's ssh: QEMU bound a free one itself."""
        forward = rf"HOST_FORWARD\]\s+\d+\s+127\.0\.0\.1\s+(\d+)\s+{re.escape(address)}\s"
        found = re.search(forward, self.human("info usernet"))
        if not found:
            raise LabError("QEMU forwards no port to the host's ssh")
        return int(found[1])
