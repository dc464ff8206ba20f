# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prometheus and promtool, for the test of docs/monitoring, out of Debian's package.

The package is unpacked and not installed: an installed one would start a server on the developer's machine.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType

from dev import ROOT

HOME = ROOT / ".cache" / "prometheus"
STARTED = 60  # seconds that a busy machine may take


def tool(name: str) -> str:
    """The path of a program of the package; empty without one."""
    unpacked = HOME / "usr" / "bin" / name
    return str(unpacked) if unpacked.exists() else shutil.which(name) or ""


def present() -> bool:
    """Whether both programs are there, after trying to unpack Debian's package."""
    if not (tool("promtool") and tool("prometheus")) and shutil.which("apt-get"):
        with tempfile.TemporaryDirectory() as folder:
            # Without permissions for apt's own user the download still works, with a warning.
            done = subprocess.run(
                ["apt-get", "-q", "download", "prometheus"], cwd=folder, capture_output=True, check=False
            )
            for package in Path(folder).glob("prometheus_*.deb") if not done.returncode else ():
                HOME.mkdir(parents=True, exist_ok=True)
                subprocess.run(["dpkg-deb", "--extract", str(package), str(HOME)], check=True)
    return bool(tool("promtool") and tool("prometheus"))


class Server:
    """A Prometheus that reads a database and scrapes nothing, on a free port of this machine alone."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._place = f"127.0.0.1:{free.getsockname()[1]}"
        words = ["--config.file=prometheus.yml", "--storage.tsdb.path=data", f"--web.listen-address={self._place}"]
        words += ["--storage.tsdb.retention.time=100y", "--log.level=error"]
        self._process = subprocess.Popen(
            [tool("prometheus"), *words], cwd=folder, env={**os.environ, "GOMAXPROCS": "1"}
        )

    def __enter__(self) -> str:
        address = f"http://{self._place}"
        until = time.monotonic() + STARTED
        while time.monotonic() < until and self._process.poll() is None:
            try:
                with urllib.request.urlopen(f"{address}/-/ready", timeout=5):
                    return address
            except (urllib.error.URLError, OSError):
                continue
        self._end()
        raise RuntimeError(f"prometheus was not ready within {STARTED} s, or ended")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        self._process.terminate()
        self._process.wait()
