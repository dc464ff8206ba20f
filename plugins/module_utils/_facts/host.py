# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How facts read a host: files below one root, never written. PRIVATE to the collection.

The timer's look needs this module, too, so methods that ask drivers import what they need themselves.
"""

from __future__ import annotations

import os
import stat
import sys

from .._number import is_number

# A file of /proc or /sys that is larger than this is not what we think it is
# (/proc/interrupts of 1,152 CPUs has 2.2 MB).
MAX_BYTES = 4 * 1024 * 1024  # of a file that no reader sets another limit for

# A chain of symbolic links this long is a loop (the kernel's MAXSYMLINKS).
_MAX_LINKS = 40
# Longer than any path may be (PATH_MAX), so a path with this part never exists.
_NOWHERE = "x" * 4096


class Host:
    """A host as files below `root` ("/" is the machine we run on)."""

    def __init__(self, root: str = "/") -> None:
        self.root = root.rstrip("/")
        self.disk_names: dict[str, str] = {}  # place → name, as last seen
        # Where the metadata service answers; below another root there is no network.
        self.metadata_service: tuple[str, int] | None = None if self.root else ("169.254.169.254", 80)

    def real(self, path: str) -> str:
        """The path on this machine of the host's absolute `path`.

        Below another root, symbolic links are resolved as that host would: none leads out of it.
        """
        return self._inside(path) if self.root else path

    def text(self, path: str, limit: int = MAX_BYTES) -> str | None:
        """The file's text, at most its first `limit` bytes; None when it can't be read.

        NUL bytes are dropped (recorded sysfs files end in them); bytes that aren't
        UTF-8 become U+FFFD, so hostile content raises nothing.
        """
        return self._read(path, limit, records=False)

    def line(self, path: str) -> str | None:
        """The file's text without leading and trailing white space; None when it can't be read or is empty."""
        text = self._read(path, 4096, records=False)
        return (text.strip() or None) if text is not None else None

    def number(self, path: str) -> int | None:
        """The whole number that a file holds; None when it can't be read or holds something else."""
        text = self.line(path) or ""
        return int(text) if is_number(text) else None

    def kernel_arguments(self) -> tuple[str, ...]:
        """The arguments on the kernel's command line; none when it can't be read."""
        from .._parse import cmdline

        return cmdline.tokens(self.text("/proc/cmdline", cmdline.LONGEST) or "")

    def raw(self, path: str) -> bytes | None:
        """The file's bytes, with NULs, which separate the arguments of a process; None when it can't be read."""
        return self._bytes(path, MAX_BYTES, records=False)

    def records(self, path: str, limit: int = MAX_BYTES) -> str | None:
        """The text of a file that gives one record per read and then would block: /dev/kmsg.

        Each opening has its own position, so nothing is taken from other readers.
        """
        return self._read(path, limit, records=True)

    def names(self, path: str) -> list[str]:
        """The sorted names in a directory; empty when it can't be read."""
        try:
            return sorted(os.listdir(self.real(path)))
        except (OSError, ValueError):
            return []

    def link(self, path: str) -> str | None:
        """The text of a symbolic link; None when there is none."""
        parent, name = os.path.split(path)
        try:
            return os.readlink(os.path.join(self.real(parent), name))
        except (OSError, ValueError):
            return None

    def target(self, path: str) -> str:
        """The name of what a symbolic link leads to; empty when there is none."""
        return os.path.basename(self.link(path) or "")

    def exists(self, path: str) -> bool:
        """Whether something (a dangling link too) has this name."""
        parent, name = os.path.split(path)
        try:
            return os.path.lexists(os.path.join(self.real(parent), name))
        except ValueError:
            return False

    def fixed(self, path: str) -> bool:
        """Whether the file exists without write permission, which in /sys holds for root, too."""
        try:
            return not os.stat(self.real(path)).st_mode & 0o222
        except (OSError, ValueError):
            return False

    def ethtool(self, device: str, record: bytes) -> bytes | None:
        """A driver's answer to an ethtool record; None when it has none, and for another root, which has no kernel.

        Raises ValueError for a record that would change something.
        """
        from .._parse.ethtool import READING

        if int.from_bytes(record[:4], sys.byteorder) not in READING:
            raise ValueError("an ethtool record that changes something, on a host that only reads")
        try:
            return self._driver(device, record)
        except OSError:
            return None

    def nvme_log(self, controller: str, page: int, size: int) -> bytes | None:
        """A log page of an NVMe controller, in `size` bytes; None when it has none, and for another root."""
        from . import ioctl

        try:
            return None if self.root else ioctl.nvme_log(controller, page, size)
        except OSError:
            return None

    def routing(self, request: bytes) -> bytes | None:
        """The kernel's list of addresses, routes or rules; None when it gives none, and for another root.

        Raises ValueError for a request that would change something.
        """
        from .._parse import route_message

        if route_message.kind(request) not in route_message.READING:
            raise ValueError("a request to the kernel's routing that changes something, on a host that only reads")
        try:
            return self._route(request)
        except OSError:
            return None

    def machine(self) -> str | None:
        """The machine as uname says; None for another root, which has no running kernel."""
        return None if self.root else os.uname().machine

    def _driver(self, device: str, record: bytes) -> bytes:
        if self.root:
            raise OSError(95, "No kernel runs below another root", self.root)
        from . import ioctl

        return ioctl.ethtool(device, record)

    def _route(self, request: bytes) -> bytes:
        if self.root:
            raise OSError(95, "No kernel runs below another root", self.root)
        from . import ioctl

        return ioctl.ask_routes(request)

    def _read(self, path: str, limit: int, records: bool) -> str | None:
        data = self._bytes(path, limit, records)
        return data.replace(b"\0", b"").decode("utf-8", "replace") if data is not None else None

    def _bytes(self, path: str, limit: int, records: bool) -> bytes | None:
        if path.startswith("/dev/") and not records:
            return None  # to open a device may do something: /dev/watchdog restarts the host unless it is fed
        chunks = []
        remaining = limit
        try:
            real = self.real(path)
            # Nor by another name: a host's users can link to one, and to a pipe, whose reader would lack its text.
            if not records and not stat.S_ISREG(os.stat(real).st_mode):
                return None
            descriptor = os.open(real, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK)
        except (OSError, ValueError):
            return None
        try:
            while remaining > 0:
                try:
                    # A record that finds too little room is an error.
                    chunk = os.read(descriptor, 8192 if records else min(remaining, 131072))
                except BlockingIOError:
                    if records:
                        break
                    return None
                except BrokenPipeError:
                    # The kernel has overwritten the next record; the next read continues with the oldest.
                    remaining -= 8192
                    continue
                if not chunk:
                    break
                chunks.append(chunk)
                remaining -= len(chunk)
        except OSError:
            return None
        finally:
            os.close(descriptor)
        return b"".join(chunks)

    def _inside(self, path: str) -> str:
        """The real path below the root; a loop ends as a path that doesn't exist."""
        resolved = self._resolved(path)
        return self.root + (f"/{_NOWHERE}" if resolved is None else resolved)

    def _resolved(self, path: str) -> str | None:
        """The host's real path, component by component; empty for /, None at a loop."""
        done = ""
        todo = path.split("/")[::-1]
        links = 0
        while todo:
            part = todo.pop()
            if part in ("", "."):
                continue
            if part == "..":
                done = done.rpartition("/")[0]
                continue
            target = self._target(f"{done}/{part}")
            if target is None:
                done = f"{done}/{part}"
                continue
            links += 1
            if links > _MAX_LINKS:
                return None
            if target.startswith("/"):
                done = ""
            todo.extend(target.split("/")[::-1])
        return done

    def _target(self, place: str) -> str | None:
        """The text of the link at a real path of the host."""
        try:
            return os.readlink(self.root + place)
        except (OSError, ValueError):
            return None
