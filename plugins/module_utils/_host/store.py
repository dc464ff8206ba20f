# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where nearmetal keeps its files on a host, opened so that nobody can redirect it. PRIVATE to the collection.

Every component of a path is opened by directory descriptor with O_NOFOLLOW and
must belong to root (or to the user of a test root) and be closed to others'
writing; a file is replaced by fsync + rename of a temporary file beside it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO

from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost

DATA = "/var/lib/nearmetal"
RUN = "/run/nearmetal"
LOCK = f"{RUN}/lock"
UNIT = "unit"  # in the lock: held by the unit
_UNIT_ENDS = 600.0  # with a twentieth of a core, a plan takes minutes
_STALE = 0.5  # seconds until the lock's new holder has written who it is
FINGERPRINT = f"{RUN}/fingerprint"  # the unit writes it when it has released the lock
MAX_BYTES = 1024 * 1024
_LABEL = "security.selinux"


def explain(path: str, error: OSError) -> NearmetalError:
    """What the operator reads instead of an OSError."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return NearmetalError(f"{path}: no space left on its file system; free some and run again")
    if error.errno == errno.EROFS:
        return NearmetalError(
            f"{path}: its file system is read-only, so this host can't keep a way back; run elsewhere"
        )
    if error.errno == errno.EISDIR:
        return NearmetalError(f"{path} is a directory, so it isn't ours: move it away and run again")
    if error.errno in (errno.EACCES, errno.EPERM):
        return NearmetalError(f"{path}: permission denied; nearmetal needs root (become: true)")
    return NearmetalError(f"{path}: {os.strerror(error.errno or 0)}")


def is_closed(descriptor: int) -> bool:
    """Whether it belongs to root (or to the user of a test root), and nobody else may write to it."""
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
                f"{path} is a symbolic link or no directory: nearmetal doesn't follow it; remove it and run again"
            ) from None
        raise
    if not is_closed(descriptor):
        os.close(descriptor)
        raise NearmetalError(f"{path} can be written by others than root: chown root and chmod go-w it, then run again")
    return descriptor


@contextmanager
def directory(host: WritableHost, path: str, create: int | None = None) -> Iterator[int]:
    """A descriptor of the directory `path`; `create` is the mode for components that are missing.

    Raises FileNotFoundError when it is absent and not to be created, else NearmetalError.
    """
    descriptor = os.open(host.real("/"), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
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


def open_file(host: WritableHost, path: str) -> int | None:
    """A descriptor of a regular file of ours; None when it doesn't exist."""
    folder, name = os.path.split(path)
    try:
        with directory(host, folder) as parent:
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=parent)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise NearmetalError(
                f"{path} is a symbolic link, which nearmetal doesn't follow: put the file there or move the link away,"
                " and run again"
            ) from None
        raise explain(path, error) from None
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise explain(path, IsADirectoryError(errno.EISDIR, ""))
    raise NearmetalError(f"{path} is no regular file: remove it and run again")


def read_file(host: WritableHost, path: str) -> bytes | None:
    """The bytes of a file of ours; None when it doesn't exist."""
    descriptor = open_file(host, path)
    if descriptor is None:
        return None
    try:
        with os.fdopen(descriptor, "rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise explain(path, error) from None
    if len(data) > MAX_BYTES:
        raise NearmetalError(f"{path} is larger than {MAX_BYTES} bytes, so it isn't ours: move it away and run again")
    return data


def beside(path: str) -> str:
    """The name under which a file is written before it gets its own; a run that is killed leaves it."""
    folder, name = os.path.split(path)
    return f"{folder}/.{name}.new"


def replace_file(host: WritableHost, path: str, data: bytes, mode: int, folder_mode: int) -> None:
    """Give `path` the content `data` at once: afterwards it is the old file or the new one, never a third."""
    folder, name = os.path.split(path)
    new = os.path.basename(beside(path))
    try:
        with directory(host, folder, create=folder_mode) as parent:
            try:
                _unlink(parent, new)  # left by a run that was killed
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                with os.fdopen(os.open(new, flags, mode, dir_fd=parent), "wb") as stream:
                    os.fchmod(stream.fileno(), mode)
                    _label(parent, name, stream.fileno())
                    stream.write(data)
                    stream.flush()
                    os.fsync(stream.fileno())
                os.rename(new, name, src_dir_fd=parent, dst_dir_fd=parent)
                os.fsync(parent)
            except OSError:
                _unlink(parent, new)
                raise
    except OSError as error:
        raise explain(path, error) from None


def _label(parent: int, name: str, new: int) -> None:
    """Give the new file the SELinux label of the one it replaces, which may differ from its folder's.

    A file without a predecessor has its folder's label, as policies expect of sysctl.d,
    tmpfiles.d, units and rules. Without SELinux there is no label, and nothing to do.
    """
    with suppress(OSError):
        old = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
        try:
            os.setxattr(new, _LABEL, os.getxattr(old, _LABEL))
        finally:
            os.close(old)


def remove_file(host: WritableHost, path: str) -> None:
    """Remove `path`, if it exists."""
    folder, name = os.path.split(path)
    try:
        with directory(host, folder) as parent:
            _unlink(parent, name)
            os.fsync(parent)
    except FileNotFoundError:
        return
    except OSError as error:
        raise explain(path, error) from None


def remove_temporary(host: WritableHost) -> None:
    """Remove what runs that were killed left in our directories; the caller holds the lock."""
    paths = [f"{folder}/{name}" for folder in (DATA, RUN) for name in host.names(folder)]
    left = [path for path in paths if path.endswith(".new") and os.path.basename(path).startswith(".")]
    for path in left:
        if path != beside(FINGERPRINT):
            remove_file(host, path)
    if left:
        remove_empty_data(host)


def remove_empty_data(host: WritableHost) -> None:
    """Remove our data directory once nothing is in it, so that a restored host shows no trace."""
    remove_empty(host, DATA)


def remove_empty(host: WritableHost, path: str) -> None:
    """Remove a directory of ours if nothing is in it."""
    folder, name = os.path.split(path)
    try:
        with directory(host, folder) as parent:
            os.rmdir(name, dir_fd=parent)
    except OSError:
        return


def _unlink(parent: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=parent)
    except FileNotFoundError:
        return


@contextmanager
def lock(host: WritableHost, patience: float = 0, holder: str = "") -> Iterator[None]:
    """Hold the host's one lock; a run that doesn't get it within `patience` seconds fails and names the holder.

    Everybody waits for the unit: it starts by itself, with the boot and with what a run changes.
    """
    folder, name = os.path.split(LOCK)
    try:
        with directory(host, folder, create=0o755) as parent:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(name, flags, 0o600, dir_fd=parent)
    except OSError as error:
        raise explain(LOCK, error) from None
    with os.fdopen(descriptor, "r+b", buffering=0) as stream:
        started = time.monotonic()
        while not _locked(stream):
            stream.seek(0)
            pid, _space, other = stream.read(32).decode("ascii", "replace").strip().partition(" ")
            if time.monotonic() - started < max(patience, _STALE, _UNIT_ENDS if other == UNIT else 0.0):
                time.sleep(0.2)
                continue
            raise NearmetalError(
                f"another nearmetal run (pid {pid or 'unknown'}) is changing this host: run again when it has ended"
            )
        try:
            stream.seek(0)
            stream.truncate(0)
            stream.write(f"{os.getpid()} {holder}".encode())
        except OSError as error:
            raise explain(LOCK, error) from None
        yield


def _locked(stream: FileIO) -> bool:
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
