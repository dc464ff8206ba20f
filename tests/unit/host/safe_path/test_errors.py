# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a file is that nearmetal doesn't open, and what an operator reads then."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._host import safe_path


@contextmanager
def another_user() -> "Iterator[None]":
    """As another user than root, where that is possible."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "no space left"),
        (errno.EDQUOT, "no space left"),
        (errno.EROFS, "its file system is read-only"),
        (errno.EISDIR, "is a directory"),
        (errno.ENXIO, "is not a regular file"),
        (errno.EIO, "/a/b: Input/output error"),
    ],
)
def test_an_error_says_what_to_do(number: int, words: str) -> None:
    assert words in str(safe_path.explain("/a/b", OSError(number, os.strerror(number))))


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM])
def test_who_is_not_root_reads_that_nearmetal_needs_it(number: int) -> None:
    with another_user():
        assert "nearmetal needs root" in str(safe_path.explain("/a/b", OSError(number, "")))
    if os.geteuid() == 0:
        assert "even root can't write it" in str(safe_path.explain("/a/b", OSError(number, "")))


@pytest.mark.parametrize(("mode", "closed"), [(0o755, True), (0o700, True), (0o775, False), (0o757, False)])
def test_what_others_may_write_is_not_closed(mode: int, closed: bool, tmp_path: Path) -> None:
    tmp_path.chmod(mode)
    descriptor = os.open(tmp_path, os.O_RDONLY)
    assert safe_path.is_closed(descriptor) is closed
    with another_user():
        assert safe_path.is_closed(descriptor) is closed, "a folder of root"
    if os.geteuid() == 0:
        os.chown(tmp_path, 65534, 65534)
        assert not safe_path.is_closed(descriptor)
    os.close(descriptor)


def test_only_a_regular_file_in_folders_of_root_is_opened(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(mode=0o755)
    assert safe_path.open_file(str(tmp_path), "/a/b") is None
    assert safe_path.open_file(str(tmp_path), "/c/b") is None
    (tmp_path / "a/b").write_text("content")
    descriptor = safe_path.open_file(str(tmp_path), "/a/b")
    assert descriptor is not None
    assert os.read(descriptor, 100) == b"content"
    os.close(descriptor)
    (tmp_path / "a/link").symlink_to("b")
    (tmp_path / "a/folder").mkdir()
    os.mkfifo(tmp_path / "a/pipe")
    (tmp_path / "linked").symlink_to("a")
    for path, words in (
        ("/a/link", "is a symbolic link"),
        ("/a/folder", "is a directory"),
        ("/a/pipe", "is not a regular file"),
        ("/linked/b", "is a symbolic link"),
        ("/a/b/c", "not a directory"),
        (f"/a/{'x' * 300}", "File name too long"),
        (f"/{'x' * 300}/b", "File name too long"),
    ):
        with pytest.raises(NearmetalError, match=words):
            safe_path.open_file(str(tmp_path), path)
