# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A raw device that a benchmark may use: nothing is on it, and nobody uses it. PRIVATE to the collection."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
from contextlib import ExitStack, contextmanager
from typing import Any, Dict, Iterator, Mapping

from ..._error import NearmetalError
from ..._facts import disk
from ..._facts.host import Host
from ..._parse import mountinfo
from ..._words import plain, shown
from ..tools.disk import SHAPES, parts
from .processes import finished

_SECTOR = 512  # bytes, of /sys/block/*/size
_NOTHING, _SECONDS = 2, 60  # blkid's exit status where it finds no signature; its time, which a lost disk takes
_FIRST_BYTES = 1024 * 1024  # of a device; most contents are there


@contextmanager
def claimed(host: Host, options: Mapping[str, Any]) -> Iterator[Dict[str, Any]]:
    """The options with the kernel's names for the devices, if they have any. Raises NearmetalError.

    The kernel lets nobody else mount a device, or add it to a RAID or a volume group, until the end.
    """
    with ExitStack() as claims:
        given = parts(options.get("device"))
        names = [claims.enter_context(_claimed(host, device, options)) for device in given]
        yield {**options, "device": ",".join(names)} if names else dict(options)


@contextmanager
def _claimed(host: Host, given: str, options: Mapping[str, Any]) -> Iterator[str]:
    descriptor = _open(given)
    try:
        name = _name(host, given, os.fstat(descriptor))
        require_unused(host, given, name)
        require_empty(given, f"/dev/fd/{descriptor}", descriptor)
        require_size(host, given, name, options["size_mib"])
        if SHAPES[options["shape"]].writes:
            require_consent(host, given, name, options)
        yield f"/dev/{name.replace('!', '/')}"
    finally:
        os.close(descriptor)


def _open(given: str) -> int:
    try:
        return os.open(given, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        if error.errno == errno.EBUSY:
            reason = "it is mounted, or part of a RAID or a volume group, or in use as swap"
        raise _refusal(given, reason) from None


def _name(host: Host, given: str, status: os.stat_result) -> str:
    """The kernel's name of the whole device."""
    if not stat.S_ISBLK(status.st_mode):
        raise _refusal(given, "it isn't a block device")
    number = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
    name = os.path.basename(host.link(f"/sys/dev/block/{number}") or "")
    if not name or not host.exists(f"{disk.BLOCK}/{name}"):
        raise _refusal(given, "it is a partition: name the whole disk")
    return name


def require_unused(host: Host, given: str, name: str) -> None:
    """Raises NearmetalError for a device with partitions, or that something on the host uses."""
    folder = f"{disk.BLOCK}/{name}"
    parts = [part for part in host.names(folder) if host.exists(f"{folder}/{part}/partition")]
    if parts:
        raise _refusal(given, f"it has partitions ({plain(', '.join(parts[:4]))})")
    holders = host.names(f"{folder}/holders")
    if holders:
        raise _refusal(given, f"{plain(', '.join(holders[:4]))} is built on it")
    number = host.line(f"{folder}/dev")
    mounts = [
        mount.point
        for mount in mountinfo.parse(host.text("/proc/self/mountinfo") or "")
        if mount.device == number or mount.source == f"/dev/{name}"
    ]
    if mounts:
        raise _refusal(given, f"it is mounted on {plain(mounts[0])}")
    swaps = (host.text("/proc/swaps") or "").splitlines()[1:]
    if any(line.split()[:1] == [f"/dev/{name}"] for line in swaps):
        raise _refusal(given, "the host swaps to it")


def require_empty(given: str, path: str, descriptor: int) -> None:
    """Raises NearmetalError for a device with the signature of a file system, a partition table or the like."""
    # For a device that it can't open or read, blkid ends as for one without a file system.
    try:
        claimed, on_disk = os.fstat(descriptor), os.stat(path)
        os.pread(descriptor, _FIRST_BYTES, 0)
    except OSError as error:
        raise _refusal(given, f"it can't be read: {os.strerror(error.errno or 0)}") from None
    if (claimed.st_rdev, claimed.st_ino) != (on_disk.st_rdev, on_disk.st_ino):
        raise _refusal(given, "another device has taken its place, so blkid would look at that: run again")
    argv = ["blkid", "--probe", "--output", "export", "--", path]
    try:
        blkid = finished(argv, descriptor, _SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _refusal(
            given, f"blkid, which looks for a file system on it, can't be run ({plain(str(error))})"
        ) from None
    if blkid.returncode == _NOTHING and not blkid.stdout.strip():
        return
    said = blkid.stdout.decode("utf-8", "replace").splitlines()
    contents = [line.partition("=")[2] for line in said if line.startswith(("TYPE=", "PTTYPE="))]
    detail = f"blkid finds {plain(', '.join(contents))}" if contents else f"blkid ended with code {blkid.returncode}"
    raise _refusal(
        given, f"it has a file system, a partition table or the like, which a benchmark leaves alone: {detail}"
    )


def require_size(host: Host, given: str, name: str, size_mib: int) -> None:
    """Raises NearmetalError for a device with less room than the benchmark uses."""
    sectors = host.number(f"{disk.BLOCK}/{name}/size") or 0
    room = sectors * _SECTOR // (1024 * 1024)
    if size_mib > room:
        raise _refusal(given, f"it has {room} MiB, and size_mib is {size_mib}: set at most {room}")


def require_consent(host: Host, given: str, name: str, options: Mapping[str, Any]) -> None:
    """Raises NearmetalError unless the options spell out the id of the device that is written."""
    known = list(disk.identities(host, name).values())
    if not known:
        raise _refusal(
            given, f"it has no id by which a shape that writes, such as {options['shape']}, could be sure of it"
        )
    if not set(parts(options.get("write_device"))) & set(known):
        raise _refusal(
            given,
            f"the shape {options['shape']} overwrites what is on it; if you want that, set write_device to its id,"
            f" {known[0]} (now {shown(options.get('write_device'))})",
        )


def _refusal(given: str, reason: str) -> NearmetalError:
    return NearmetalError(f"device {shown(given)} can't be measured: {reason}")
