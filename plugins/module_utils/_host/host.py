# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host as the engine sees it: what facts read, and the few ways to write. PRIVATE to the collection."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import suppress

from .._error import NearmetalError, Unanswered
from .._facts.host import Host

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_LOG = "/dev/log"  # the socket of systemd's journal, or of a syslog daemon
_INFO_OF_A_DAEMON = 30  # syslog(3): LOG_DAEMON | LOG_INFO
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
# A tool that hangs is ended, but on a slow host not before its own time limit, which for systemctl is 180 s.
TOOL_SECONDS = 600.0


class Kind:
    """The kind of a host in a run: the scopes of the changes that are done, and whether what runs may be changed."""

    def __init__(self, *scopes: str, live: bool = True) -> None:
        self.scopes = scopes
        self.live = live


RUNNING = Kind("runtime", "boot")
IMAGE = Kind("boot", live=False)  # an image is made of it: nothing that runs is changed, nothing of this host is kept
SANDBOX = Kind("runtime")  # in the unit's sandbox, where no file is written


class WritableHost(Host):
    """Adds the calls that change a host. Only the engine holds one."""

    kind = RUNNING

    def write_value(self, path: str, text: str) -> None:
        """Write `text` to an existing kernel file in one write(2).

        Raises OSError as the kernel answers; a short write is EIO, because a
        kernel file has taken a part of the value then.
        """
        data = text.encode()
        descriptor = os.open(self.real(path), os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY)
        try:
            if os.write(descriptor, data) != len(data):
                raise OSError(5, "the kernel took only a part of the value", path)
        finally:
            os.close(descriptor)

    def set_driver(self, device: str, record: bytes) -> None:
        """Hand a driver an ethtool record that changes it. Raises OSError as the kernel answers."""
        self._driver(device, record)

    def set_routing(self, request: bytes) -> None:
        """Hand the kernel a change of routes or rules. Raises OSError as the kernel answers."""
        self._route(request)

    def writable(self, path: str) -> bool:
        """Whether the file could be opened for writing; False on a read-only mount."""
        return os.access(self.real(path), os.W_OK)

    def command(self, argv: Sequence[str], timeout: float = TOOL_SECONDS) -> str:
        """Run a tool of the distribution, without a shell, in the C locale, and return its output.

        Raises NearmetalError when it is missing, fails, or takes longer than `timeout` seconds
        (Unanswered).
        """
        return self.output(argv, timeout).decode("utf-8", "replace")

    def output(self, argv: Sequence[str], timeout: float = TOOL_SECONDS) -> bytes:
        """Like `command`, but returns the bytes of the output."""
        import subprocess  # a run without tools, such as the timer's look, does without its 8 ms

        name = " ".join(argv[:3])
        program = self.real(argv[0]) if argv[0].startswith("/") else argv[0]
        try:
            tool = subprocess.Popen(
                [program, *argv[1:]],
                env={"PATH": _PATH, "LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except OSError as error:
            raise NearmetalError(f"{name}: {os.strerror(error.errno or 0)}") from None
        with tool:
            remaining = timeout
            try:
                while True:
                    # Second by second, so that the time for which this process itself was stopped doesn't count.
                    second = min(remaining, 1.0)
                    try:
                        out, errors = tool.communicate(timeout=second)
                        break
                    except subprocess.TimeoutExpired:
                        remaining -= second
                    if remaining <= 0:
                        raise Unanswered(f"{name} did not end within {timeout:.0f} s")
            except BaseException:
                tool.kill()
                raise
        if tool.returncode != 0:
            lines = (errors or out).decode("utf-8", "replace").strip().splitlines()
            message = lines[-1] if lines else "no message"
            before, masked, _rest = message.partition(" is masked")
            remedy = f" Run `systemctl unmask {before.split()[-1]}`, and run again" if masked and before else ""
            raise NearmetalError(f"{name} failed with code {tool.returncode}: {message}{remedy}")
        return out

    def log(self, text: str) -> None:
        """A line in the host's log, which says who changed it when nearmetal is long forgotten.

        A host without a log, or one whose log is busy, goes without.
        """
        import socket  # a run without a change, such as the timer's look, does without it

        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as stream:
            stream.connect(self.real(_LOG))
            stream.send(f"<{_INFO_OF_A_DAEMON}>nearmetal[{os.getpid()}]: {text}".encode())

    def mode(self, path: str) -> int:
        """The permission bits of a file, 0644 for one that doesn't exist yet."""
        try:
            return stat.S_IMODE(os.stat(self.real(path)).st_mode)
        except OSError:
            return 0o644

    def is_root(self) -> bool:
        """Whether this process may change the host."""
        return os.geteuid() == 0

    def booted(self) -> bool:
        """Whether systemd runs and can be notified of changes, as sd_booted(3) says."""
        return self.kind.live and self.exists("/run/systemd/system")

    def boot_id(self) -> str:
        """The kernel's id of this boot; empty for an image.

        Raises NearmetalError when it can't be read: originals of this boot would pass for those of an earlier one.
        """
        if not self.kind.live:
            return ""
        boot_id = self.line(_BOOT_ID)
        if boot_id is None:
            raise NearmetalError(
                f"{_BOOT_ID} can't be read, so it isn't known which originals are of this boot: nothing was changed;"
                f" find out why with `cat {_BOOT_ID}`, and run again"
            )
        return boot_id
