# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prometheus, promtool and node_exporter, for the tests of docs/monitoring, out of Debian's packages."""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import List

from dev import ROOT
from dev.programs.unpacked import Packages

PACKAGES = Packages(
    "prometheus",
    {
        "prometheus": ("usr/bin/prometheus", "usr/bin/promtool"),
        "prometheus-node-exporter": ("usr/bin/prometheus-node-exporter",),
    },
)
STARTED = 60  # seconds that a busy machine may take


def tool(name: str) -> str:
    """The path of a program of the packages; empty without one."""
    return PACKAGES.path(f"usr/bin/{name}")


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
