# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A path on a host, walked so that nobody can redirect it. PRIVATE to the collection.

Every component is opened by directory descriptor with O_NOFOLLOW and must belong to root (or to the user of a test
root) and be closed to others' writing.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from .._error import Absent, NearmetalError


def explain(path: str, error: OSError) -> NearmetalError:
    """What the operator reads instead of an OSError."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return NearmetalError(f"{path}: no space left on its file system; free some and run again")
    if error.errno == errno.EROFS:
        return NearmetalError(
            f"{path}: its file system is read-only, and nearmetal changes nothing without the original recorded there:"
            " mount it for writing, and run again"
        )
    if error.errno == errno.EISDIR:
        return NearmetalError(f"{path} is a directory, so nearmetal didn't write it: move it away and run again")
    if error.errno == errno.ENXIO:
        return irregular(path)
    if error.errno in (errno.EACCES, errno.EPERM):
        if os.geteuid() == 0:
            return NearmetalError(
                f"{path}: even root can't write it; look for an immutable file or folder (lsattr, chattr -i) and for"
                " denials by SELinux or AppArmor, and run again"
            )
        return NearmetalError(f"{path}: permission denied; nearmetal needs root (become: true)")
    kind = Absent if error.errno == errno.ENOENT else NearmetalError
    return kind(f"{path}: {error.strerror}")


def is_closed(descriptor: int) -> bool:
    """Whether the file belongs to root (or to the user of a test root), and nobody else may write to it."""
    state = os.fstat(descriptor)
    return state.st_uid in (0, os.geteuid()) and not state.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _enter(parent: int, name: str, path: str, create: int | None) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        if create is not None:
            with suppress(FileExistsError):
                os.mkdir(name, create, dir_fd=parent)
        descriptor = os.open(name, flags, dir_fd=parent)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise NearmetalError(
                f"{path} is a symbolic link, which nearmetal doesn't follow, or not a directory: put a directory with"
                " the same content in its place, and run again"
            ) from None
        raise
    if not is_closed(descriptor):
        os.close(descriptor)
        raise NearmetalError(
            f"{path} can be written by users other than root: run chown root and chmod go-w on it, then run again"
        )
    return descriptor


@contextmanager
def directory(root: str, path: str, create: int | None = None) -> Iterator[int]:
    """A descriptor of the directory `path` below `root`; `create` is the mode for components that are missing.

    Raises FileNotFoundError when it is absent and not to be created, else NearmetalError.
    """
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        walked = ""
        for name in path.strip("/").split("/"):
            walked += "/" + name
            try:
                inner = _enter(descriptor, name, walked, create)
            except FileNotFoundError:
                raise
            except OSError as error:
                raise explain(walked, error) from None
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def open_file(root: str, path: str) -> int | None:
    """A descriptor of a regular file of nearmetal; None when it doesn't exist."""
    folder, name = os.path.split(path)
    try:
        with directory(root, folder) as parent:
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=parent)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise NearmetalError(
                f"{path} is a symbolic link, which nearmetal doesn't follow: put the file itself in its place, or move"
                " the link away, and run again"
            ) from None
        raise explain(path, error) from None
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise explain(path, IsADirectoryError(errno.EISDIR, ""))
    raise irregular(path)


def irregular(path: str) -> NearmetalError:
    """The error that something other than a file has the name of a file of nearmetal."""
    return NearmetalError(f"{path} is not a regular file: remove it and run again")
