# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel answers without a file: ethtool, a log page of NVMe, and rtnetlink(7). PRIVATE to the collection."""

from __future__ import annotations

import array
import fcntl
import os
import socket
import struct

from .._parse.ethtool import slack
from .._parse.route_message import DONE, ERROR, errno_of, messages

_SIOCETHTOOL = 0x8946
_NAME = 15  # IFNAMSIZ without the closing NUL
_NVME_ADMIN = 0xC0484E41  # NVME_IOCTL_ADMIN_CMD
_GET_LOG_PAGE = 0x02
_NAMESPACE = 1  # EBS has one namespace per device
# struct nvme_admin_cmd: opcode, namespace, address and length of the data, the first of six command words.
_NVME_COMMAND = struct.Struct("<B3xI8x8xQ4xII20x8x")
_LARGEST = 4 * 1024 * 1024  # a host with more routes is a router, and has its own routing daemon
_PART = 65536  # the kernel's parts of a list have at most 32 KiB
_SECONDS = 5.0


def ethtool(device: str, record: bytes) -> bytes:
    """Hand the record to the driver of the interface and return it as the driver left it.

    Raises OSError as the kernel answers. Any socket will do; one of AF_UNIX reaches no network. The memory after the
    record is for a driver that got more queues since it was asked for its counts.
    """
    if not 0 < len(device.encode()) <= _NAME:
        raise OSError(19, "No such device", device)
    memory = array.array("B", record)
    memory.frombytes(bytes(slack(record)))
    request = struct.pack("16sP16x", device.encode(), memory.buffer_info()[0])
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCETHTOOL, request)
    return memory[: len(record)].tobytes()


def nvme_log(controller: str, page: int, size: int) -> bytes:
    """A log page of an NVMe controller, /dev/<controller>. It changes nothing.

    Raises OSError as the kernel answers, and for a page that the controller doesn't have.
    """
    memory = array.array("B", bytes(size))
    command = nvme_command(page, size, memory.buffer_info()[0])
    descriptor = os.open(f"/dev/{controller}", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        status = fcntl.ioctl(descriptor, _NVME_ADMIN, bytearray(command))
    finally:
        os.close(descriptor)
    if status:
        raise OSError(5, f"NVMe status {status:#x}", controller)
    return memory.tobytes()


def nvme_command(page: int, size: int, address: int) -> bytes:
    """The command that puts `size` bytes of a log page at `address`."""
    dwords = size // 4 - 1  # counted from zero
    return _NVME_COMMAND.pack(_GET_LOG_PAGE, _NAMESPACE, address, size, dwords << 16 | page)


def ask_routes(request: bytes) -> bytes:
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
