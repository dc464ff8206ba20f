# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Replacing files so that undoing it needs no space, and GRUB always finds a complete file. PRIVATE."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from contextlib import suppress
from typing import Optional

from ..._error import Absent, NearmetalError
from ..._host import store
from ..._host.host import WritableHost

# EXT4_IOC_CHECKPOINT of include/uapi/linux/ext4.h, since Linux 5.14: _IOW('f', 43, __u32).
_CHECKPOINT = 0x4004662B


class UndoFailed(NearmetalError):
    """The change failed, and so did undoing it: files of the boot loader may hold the new arguments."""


def put(host: WritableHost, path: str, text: str, mode: int) -> None:
    """Give `path` this content, every byte of which may be of a file that `text_of` read."""
    store.replace_file(host, path, text.encode("utf-8", "surrogateescape"), mode, folder_mode=0o755)


def keep(host: WritableHost, path: str) -> None:
    """Give the file its second name, if there is one, so that `rename_back` needs no space."""
    with suppress(Absent), store.folder_of(host, path) as (parent, name):
        _keep(parent, name, os.path.basename(second_path(path)))


def publish(host: WritableHost, path: str, beside: str, keep_old: bool) -> None:
    """Rename `beside` to `path`; with `keep_old` the old file stays as path.nearmetal-old.

    GRUB reads a file system without replaying its journal. So before and after
    the rename the file system writes its journal out, and the old file keeps a
    name: whenever the power fails, GRUB finds the old file or the new one.
    """
    with store.folder_of(host, path) as (parent, name):
        old = f"{name}.nearmetal-old"
        _keep(parent, name, old)
        _settle(parent)
        os.rename(os.path.basename(beside), name, src_dir_fd=parent, dst_dir_fd=parent)
        try:
            _settle(parent)
        except OSError:
            os.rename(old, name, src_dir_fd=parent, dst_dir_fd=parent)
            raise
        if not keep_old:
            os.unlink(old, dir_fd=parent)
            os.fsync(parent)


def rename_back(host: WritableHost, path: str, old: str) -> None:
    """Give an old file in the same folder its name again, which needs no space."""
    with store.folder_of(host, path) as (parent, name):
        os.rename(os.path.basename(old), name, src_dir_fd=parent, dst_dir_fd=parent)
        _settle(parent)


def text_of(host: WritableHost, path: str) -> Optional[str]:
    """A file's text, every byte of it kept; None when there is none."""
    data = store.read_file(host, path)
    return None if data is None else data.decode("utf-8", "surrogateescape")


def is_unchanged(host: WritableHost, path: str, old: Optional[str]) -> Optional[bool]:
    """Whether a file still has the text `old`; None when it can't be read now."""
    try:
        return text_of(host, path) == old
    except NearmetalError:
        return None


def _settle(folder: int) -> None:
    """Write the changes of this directory to their place on the disk, not only to the file system's journal."""
    os.fsync(folder)
    with suppress(OSError):  # not ext4, or a kernel before 5.14: fsync is all there is
        fcntl.ioctl(folder, _CHECKPOINT, struct.pack("I", 0))


def second_path(path: str) -> str:
    """The second name of a file while it is replaced."""
    folder, name = os.path.split(path)
    return f"{folder}/.{name}.nearmetal-old"


def _keep(parent: int, name: str, old: str) -> None:
    """Give the file this second name, also where a run that was killed has left it. Raises OSError.

    It is a hard link; on FAT, which has none, a copy.
    """
    with suppress(FileNotFoundError):
        os.unlink(old, dir_fd=parent)
    try:
        os.link(name, old, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP):
            raise
        with os.fdopen(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent), "rb") as present:
            data = present.read()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(old, flags, 0o600, dir_fd=parent), "wb") as copy:
            copy.write(data)
            copy.flush()
            os.fsync(copy.fileno())
