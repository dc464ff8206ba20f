# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where nearmetal keeps its files on a host, opened so that nobody can redirect it. PRIVATE to the collection.

A file is replaced by fsync + rename of a temporary file beside it.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from io import FileIO

from .._error import Absent, NearmetalError
from . import safe_path
from .host import WritableHost

DATA = "/var/lib/nearmetal"
RUN = "/run/nearmetal"
LOCK = f"{RUN}/lock"
UNIT = "unit"  # the lock's text while the unit holds it
_UNIT_ENDS = 600.0  # seconds that a run of the unit may take: with a twentieth of a core, a plan takes minutes
_STALE = 0.5  # seconds in which a new holder writes its text to the lock
FINGERPRINT = f"{RUN}/fingerprint"  # the unit writes it when it has released the lock
SMT_ON = f"{RUN}/smt_on"  # the CPUs that were offline before a run that is switching SMT on
METRICS = "nearmetal_host.prom"  # in the directory that an operator names; beside a report.prom that is copied there
MAX_BYTES = 1024 * 1024
_LABEL = "security.selinux"


def directory(host: WritableHost, path: str, create: int | None = None) -> AbstractContextManager[int]:
    """A descriptor of the directory `path` on `host`, as of `walk`."""
    return safe_path.directory(host.real("/"), path, create)


@contextmanager
def folder_of(host: WritableHost, path: str, create: int | None = None) -> Iterator[tuple[int, str]]:
    """A descriptor of the directory of `path`, as of `directory`, and the name in it.

    Raises NearmetalError for an OSError in this block: Absent for a name or directory that there isn't.
    """
    folder, name = os.path.split(path)
    try:
        with directory(host, folder, create) as parent:
            yield parent, name
    except OSError as error:
        raise safe_path.explain(path, error) from None


def read_file(host: WritableHost, path: str) -> bytes | None:
    """The bytes of a file of nearmetal; None when it doesn't exist."""
    descriptor = safe_path.open_file(host.real("/"), path)
    if descriptor is None:
        return None
    try:
        with os.fdopen(descriptor, "rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise safe_path.explain(path, error) from None
    if len(data) > MAX_BYTES:
        raise NearmetalError(
            f"{path} is larger than {MAX_BYTES} bytes, so nearmetal didn't write it: move it away and run again"
        )
    return data


def temporary_path(path: str) -> str:
    """The temporary name under which a file is written; a killed run leaves it behind."""
    folder, name = os.path.split(path)
    return f"{folder}/.{name}.new"


def replace_file(host: WritableHost, path: str, data: bytes, mode: int, folder_mode: int) -> None:
    """Replace the file at `path` atomically: whatever happens, it is the old file or the new one."""
    new = os.path.basename(temporary_path(path))
    with folder_of(host, path, create=folder_mode) as (parent, name):
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


def link_unit(host: WritableHost, path: str) -> None:
    """Make the link in a folder `….wants` by which a target starts the unit of that name."""
    target = os.path.dirname(os.path.dirname(path))
    with folder_of(host, path, create=0o755) as (parent, name), suppress(FileExistsError):
        os.symlink(f"{target}/{name}", name, dir_fd=parent)
        os.fsync(parent)


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
    with suppress(Absent), folder_of(host, path) as (parent, name):
        _unlink(parent, name)
        os.fsync(parent)


def remove_temporary(host: WritableHost) -> None:
    """Remove what killed runs left in nearmetal's directories; the caller holds the lock."""
    paths = [f"{folder}/{name}" for folder in (DATA, RUN) for name in host.names(folder)]
    for path in paths:
        if path.endswith(".new") and os.path.basename(path).startswith(".") and path != temporary_path(FINGERPRINT):
            remove_file(host, path)
    if host.exists(DATA) and not host.names(DATA):
        remove_empty(host, DATA)


def remove_empty(host: WritableHost, path: str) -> None:
    """Remove a directory of nearmetal if nothing is in it, so that a restored host has no trace of nearmetal."""
    folder, name = os.path.split(path)
    with suppress(OSError), directory(host, folder) as parent:
        os.rmdir(name, dir_fd=parent)


def _unlink(parent: int, name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=parent)


@contextmanager
def lock(host: WritableHost, timeout: float = 0, holder: str = "") -> Iterator[None]:
    """Hold the host's one lock; a run that doesn't get it within `timeout` seconds fails and names the holder.

    Every run waits for the unit, which starts by itself, at boot and when a run changes something.
    """
    with folder_of(host, LOCK, create=0o755) as (parent, name):
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(name, flags, 0o600, dir_fd=parent)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise safe_path.irregular(LOCK)
    with os.fdopen(descriptor, "r+b", buffering=0) as stream:
        started = time.monotonic()
        while not _locked(stream):
            stream.seek(0)
            pid, _space, present_holder = stream.read(32).decode("ascii", "replace").strip().partition(" ")
            pid = pid if pid.isdigit() else "unknown"
            if time.monotonic() - started < max(timeout, _STALE, _UNIT_ENDS if present_holder == UNIT else 0.0):
                time.sleep(0.2)
                continue
            raise NearmetalError(
                f"another nearmetal run (pid {pid}) is changing this host: run again when it has ended"
            )
        with suppress(OSError):  # /run is full: a way back must not wait for that, and only who waits reads the text
            stream.seek(0)
            stream.truncate(0)
            stream.write(f"{os.getpid()} {holder}".encode())
        yield


def _locked(stream: FileIO) -> bool:
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
