# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one ioctl that we use. PRIVATE to the collection."""

from __future__ import annotations

import array
import fcntl
import socket
import struct

_SIOCETHTOOL = 0x8946
_NAME = 15  # IFNAMSIZ without the closing NUL


def ethtool(device: str, record: bytes) -> bytes:
    """Hand the record to the driver of the interface and return it as the driver left it.

    Raises OSError as the kernel answers. Any socket will do; one of AF_UNIX reaches no network.
    """
    if not 0 < len(device.encode()) <= _NAME:
        raise OSError(19, "No such device", device)
    memory = array.array("B", record)
    request = struct.pack("16sP16x", device.encode(), memory.buffer_info()[0])
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCETHTOOL, request)
    return memory.tobytes()
