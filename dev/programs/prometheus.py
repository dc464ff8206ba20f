# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prometheus, promtool and node_exporter, for the tests of docs/monitoring, out of Debian's packages.

The packages are unpacked and not installed: an installed one would start a server on the developer's machine.
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
from typing import List

from dev import ROOT

HOME = ROOT / ".cache" / "prometheus"
# Package → its programs that the tests start.
PACKAGES = {
    "prometheus": ("prometheus", "promtool"),
    "prometheus-node-exporter": ("prometheus-node-exporter",),
}
STARTED = 60  # seconds that a busy machine may take


def tool(name: str) -> str:
    """The path of a program of the package; empty without one."""
    unpacked = HOME / "usr" / "bin" / name
    return str(unpacked) if unpacked.exists() else shutil.which(name) or ""


def present() -> bool:
    """Whether all programs are there, after trying to unpack Debian's packages of those that aren't."""
    for package, programs in PACKAGES.items():
        if not all(map(tool, programs)) and shutil.which("apt-get"):
            _unpack(package)
    return all(tool(program) for programs in PACKAGES.values() for program in programs)


def _unpack(package: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        # Without permissions for apt's own user the download still works, with a warning.
        done = subprocess.run(["apt-get", "-q", "download", package], cwd=folder, capture_output=True, check=False)
        for file in Path(folder).glob(f"{package}_*.deb") if not done.returncode else ():
            HOME.mkdir(parents=True, exist_ok=True)
            subprocess.run(["dpkg-deb", "--extract", str(file), str(HOME)], check=True)


class _Service:
    """A program that answers on a free port of this machine alone while its context lasts."""

    def __init__(self, program: str, words: List[str], folder: Path, ready: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            place = f"127.0.0.1:{free.getsockname()[1]}"
        self._program, self._address, self._ready = program, f"http://{place}", ready
        command = [tool(program), *words, f"--web.listen-address={place}", "--log.level=error"]
        self._process = subprocess.Popen(command, cwd=folder, env={**os.environ, "GOMAXPROCS": "1"})

    def __enter__(self) -> str:
        until = time.monotonic() + STARTED
        while time.monotonic() < until and self._process.poll() is None:
            try:
                with urllib.request.urlopen(f"{self._address}{self._ready}", timeout=5):
                    return self._address
            except (urllib.error.URLError, OSError):
                continue
        self._end()
        raise RuntimeError(f"{self._program} was not ready within {STARTED} s, or ended")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        self._process.terminate()
        self._process.wait()


class Server(_Service):
    """A Prometheus on a database in this folder, with the folder's prometheus.yml."""

    def __init__(self, folder: Path) -> None:
        words = ["--config.file=prometheus.yml", "--storage.tsdb.path=data", "--storage.tsdb.retention.time=100y"]
        super().__init__("prometheus", words, folder, "/-/ready")


class NodeExporter(_Service):
    """A node_exporter that exports the metrics of files in these directories, and no others of this machine."""

    def __init__(self, directories: Path) -> None:
        words = ["--collector.disable-defaults", "--collector.textfile"]
        words += [f"--collector.textfile.directory={directories}"]
        super().__init__("prometheus-node-exporter", words, ROOT, "/")
