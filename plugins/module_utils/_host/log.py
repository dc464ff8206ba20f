# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A line in the host's log, which says who changed it when nearmetal is long forgotten. PRIVATE to the collection."""

from __future__ import annotations

import os
import socket
from contextlib import suppress

from .host import WritableHost

_SOCKET = "/dev/log"  # of systemd's journal, or of a syslog daemon
_INFO_OF_A_DAEMON = 30  # syslog(3): LOG_DAEMON | LOG_INFO


def log_line(host: WritableHost, text: str) -> None:
    """Log the text; a host without a log, or one whose log is busy, goes without."""
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as stream:
        stream.connect(host.real(_SOCKET))
        stream.send(f"<{_INFO_OF_A_DAEMON}>nearmetal[{os.getpid()}]: {text}".encode())
