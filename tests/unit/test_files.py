# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of the report directory."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._files import try_folder, write, write_together, writing


@contextmanager
def full(size: int) -> "Iterator[None]":
    """No file may become larger than this."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)


def test_a_full_disk_leaves_no_part_of_a_report(tmp_path: Path) -> None:
    refused = pytest.raises(NearmetalError, match="the report can't be written: File too large")
    with full(100), refused, writing("the report"):
        write(str(tmp_path / "run.json"), "x" * 1000)
    assert not list(tmp_path.iterdir())


def test_where_there_is_no_room_for_all_files_none_changes(tmp_path: Path) -> None:
    paths, told = [str(tmp_path / name) for name in ("a", "b", "c")], []
    write_together((path, "old") for path in paths)
    with full(1000), pytest.raises(OSError, match="File too large"):
        write_together(zip(paths, ("new", "x" * 2000, "new")), lambda: told.append(1))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == dict.fromkeys("abc", "old")
    assert told == [], "what makes room for the new files waits until all are written"


def test_a_folder_without_the_room_that_is_needed_is_said(tmp_path: Path) -> None:
    try_folder(str(tmp_path))
    with pytest.raises(OSError, match="No space left on device"):
        try_folder(str(tmp_path), 2**62)
    assert not list(tmp_path.iterdir())
