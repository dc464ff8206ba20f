# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A frozen host writes nothing, in none of its threads, and goes on afterwards."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import process
from lab.host import Host
from lab.qemu import supervisor

WRITES = """
import os, sys, threading
def write(path):
    stream = os.open(path, os.O_WRONLY | os.O_CREAT)
    number = 0
    while True:
        number += 1
        os.pwrite(stream, b"%09d" % number, 0)
for path in sys.argv[1:]:
    threading.Thread(target=write, args=[path]).start()
"""


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    return [tmp_path / name for name in ("a", "b", "c")]


@pytest.fixture
def host(files: list[Path], tmp_path: Path) -> Iterator[Host]:
    """A process of three threads that each write to a file, as fast as they can."""
    program = process.launch(
        [sys.executable, "-c", WRITES, *map(str, files)], tmp_path / "log", outlive=False, cwd=tmp_path
    )
    ticks = process.start_ticks(program) or 0
    (tmp_path / supervisor.QEMU).write_text(json.dumps([program, ticks]), encoding="ascii")
    started = Host("a", "default", "127.0.0.1", 0, "root", "", "", str(tmp_path), program, ticks)
    yield started
    started.end()


def written(files: list[Path]) -> list[bytes]:
    return [file.read_bytes() if file.exists() else b"" for file in files]


def changes(files: list[Path], before: list[bytes], seconds: float) -> list[Path]:
    """The files that are written within that time."""
    process.wait_until(lambda: not set(before) & set(written(files)), seconds, 0.001)
    return [file for file, held in zip(files, before) if written([file]) != [held]]


def test_the_files_of_a_frozen_host_do_not_change(host: Host, files: list[Path]) -> None:
    assert changes(files, [b""] * len(files), 30.0) == files
    for _round in range(5):
        with host.frozen():
            held = written(files)
            assert changes(files, held, 0.02) == []
        assert changes(files, held, 30.0) == files
