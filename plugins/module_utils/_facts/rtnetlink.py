# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The socket to the kernel's routing, rtnetlink(7). PRIVATE to the collection."""

from __future__ import annotations

import os
import socket

from .._parse.route_message import DONE, ERROR, errno_of, messages

_LARGEST = 4 * 1024 * 1024  # a host with more routes is a router, and has its own routing daemon
_PART = 65536  # the kernel's parts of a list have at most 32 KiB
_SECONDS = 5.0


def ask(request: bytes) -> bytes:
    """The kernel's answer to one request: a list, or nothing for a change that it made.

    Raises OSError as the kernel answers.
    """
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.settimeout(_SECONDS)
        kernel.bind((0, 0))
        kernel.send(request)
        answer = b""
        while len(answer) <= _LARGEST:
            part = kernel.recv(_PART)
            answer += part
            for message, body in messages(part):
                code = errno_of(body) if message == ERROR else 0
                if code:
                    raise OSError(code, os.strerror(code))
                if message in (DONE, ERROR):
                    return answer
    raise OSError(7, "more routes than nearmetal reads")
