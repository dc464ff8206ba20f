# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real servers on a simulated host: its kernel files lie over those of this machine, for the server alone."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import threading
from pathlib import Path
from typing import Dict, List, NamedTuple, Sequence, Tuple

from dev.programs.unpacked import SERVERS

_ABOUT = ("limits", "comm", "cmdline")
_PATIENCE = 120.0  # seconds that a busy machine may take
_FOLDERS = ("proc/sys/vm", "proc/sys/net", "sys/kernel/mm", "sys/devices/system/clocksource")
_AS_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


class Started(NamedTuple):
    """What a server printed until it was ready or ended, and the kernel's files about its process until then."""

    text: str
    files: Dict[str, str]  # limits, comm, cmdline

    def warnings(self, pattern: str) -> List[str]:
        """The lines that match."""
        return [line for line in self.text.splitlines() if re.search(pattern, line)]


def environment() -> "dict[str, str]":
    """With the libraries of the unpacked packages, and temporary files where nobody may write."""
    home = SERVERS.home
    libraries = ":".join(map(str, (*home.glob("usr/lib/*-linux-gnu"), *home.glob("usr/lib/*-linux-gnu/*/"))))
    return {**os.environ, "LD_LIBRARY_PATH": libraries, "TMPDIR": "/tmp"}


def start(
    root: Path, argv: Sequence[str], ready: str, limits: Sequence[Tuple[str, int]] = (), place: str = "/"
) -> Started:
    """Start a server as nobody on the host whose files are below `root`, until a line matches `ready`."""
    shadows = [path for folder in _FOLDERS for path in (root / folder).rglob("*") if path.is_file()]
    over = [(shlex.quote(str(path)), shlex.quote(f"/{path.relative_to(root)}")) for path in shadows]
    lines = ["ip link set lo up", *(f"test ! -e {real} || mount --bind {path} {real}" for path, real in over)]
    lines += [f"ulimit -{letter} {number}" for letter, number in limits]
    lines += ["cd " + shlex.quote(place), shlex.join(("exec", *_AS_NOBODY, *argv)).replace("'exec'", "exec")]
    command = ["unshare", "--mount", "--net", "sh", "-ec", "\n".join(lines)]
    printed: List[str] = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=environment()
    ) as process:
        timer = threading.Timer(_PATIENCE, process.kill)
        timer.start()
        assert process.stdout is not None
        files: Dict[str, str] = {}
        for line in process.stdout:
            printed.append(line)
            if re.search(ready, line):
                files = {name: Path(f"/proc/{process.pid}/{name}").read_text("utf-8") for name in _ABOUT}
                break
        process.terminate()
        printed += process.stdout.readlines()
        timer.cancel()
    return Started("".join(printed), files)


def run(argv: Sequence[str]) -> None:
    """Run a command as nobody, to make a server's files."""
    subprocess.run([*_AS_NOBODY, *argv], check=True, capture_output=True, env=environment())
