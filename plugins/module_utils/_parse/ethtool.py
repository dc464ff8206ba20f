# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The records of the ethtool ioctl, as <linux/ethtool.h> lays them out. PRIVATE to the collection.

A record is its command and 32-bit numbers, in the byte order of the host. A driver
answers what it can't do with an error, so a record that comes back is complete.
"""

from __future__ import annotations

import struct
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

GET_DRIVER = 0x03
GET_COALESCE, SET_COALESCE = 0x0E, 0x0F
GET_RINGS, SET_RINGS = 0x10, 0x11
GET_STRINGS = 0x1B
GET_STATISTICS = 0x1D
GET_PERMANENT_ADDRESS = 0x20
GET_STRING_COUNT = 0x37
GET_FEATURES, SET_FEATURES = 0x3A, 0x3B
GET_CHANNELS, SET_CHANNELS = 0x3C, 0x3D

# Commands that change nothing.
READING = frozenset(
    (
        GET_DRIVER,
        GET_COALESCE,
        GET_RINGS,
        GET_STRINGS,
        GET_STATISTICS,
        GET_PERMANENT_ADDRESS,
        GET_STRING_COUNT,
        GET_FEATURES,
        GET_CHANNELS,
    )
)

STATISTICS, FEATURES = 1, 4  # sets of strings
_STRING = 32
_COUNT = struct.Struct("=IIQI")
# The most strings that are requested: ENA with 128 queues has some 6,000 counters.
MAX_STRINGS = 16384

# Field names in the order of the header; "" for fields that we don't use.
CHANNELS = ("rx_max", "tx_max", "", "combined_max", "rx", "tx", "other", "combined")
RINGS = ("rx_max", "", "", "tx_max", "rx", "rx_mini", "rx_jumbo", "tx")
COALESCE = (
    "rx_usecs",
    "rx_frames",
    "rx_usecs_irq",
    "rx_frames_irq",
    "tx_usecs",
    "tx_frames",
    "tx_usecs_irq",
    "tx_frames_irq",
    "stats_usecs",
    "adaptive_rx",
    "adaptive_tx",
    *("",) * 11,
)


def question(command: int, words: int) -> bytes:
    """A record of this command with so many numbers, all of them 0."""
    return struct.pack("=I", command) + bytes(4 * words)


def slack(record: bytes) -> int:
    """The room that a driver may need after a record.

    Kernels before 6.19 answer with as many strings or counters as the driver has by then, however many were requested
    (net/ethtool/ioctl.c). Newer kernels compare the count, so the request keeps the exact one.
    """
    (command,) = struct.unpack_from("=I", record)
    return _STRING * MAX_STRINGS if command in (GET_STRINGS, GET_STATISTICS) else 0


def numbers(record: bytes, names: Sequence[str]) -> Dict[str, int]:
    """The record's numbers by name; empty when it is shorter than that."""
    if len(record) < 4 * (len(names) + 1):
        return {}
    values = struct.unpack_from("={}I".format(len(names)), record, 4)
    return {name: value for name, value in zip(names, values) if name}


def changed(record: bytes, command: int, names: Sequence[str], values: Mapping[str, int]) -> bytes:
    """The record as a command that sets `values` and leaves everything else as it was."""
    numbers = list(struct.unpack_from("={}I".format(len(names)), record, 4))
    for name, value in values.items():
        numbers[names.index(name)] = value
    return struct.pack("={}I".format(1 + len(names)), command, *numbers)


_LONGEST_ADDRESS = 32  # MAX_ADDR_LEN
ADDRESS_QUESTION = struct.pack("=II", GET_PERMANENT_ADDRESS, _LONGEST_ADDRESS) + bytes(_LONGEST_ADDRESS)
DRIVER_QUESTION = struct.pack("=I", GET_DRIVER) + bytes(192)


def address(record: bytes) -> Optional[str]:
    """The answer to ADDRESS_QUESTION, such as 0a:1b:…; None if all octets are zero."""
    size = struct.unpack_from("=I", record, 4)[0] if len(record) >= 8 else 0
    octets = record[8 : 8 + min(size, _LONGEST_ADDRESS)]
    return octets.hex(":") if any(octets) else None


def driver(record: bytes) -> Tuple[str, str]:
    """Name and version of the driver."""
    return _text(record[4:36]), _text(record[36:68])


def count_question(which: int) -> bytes:
    """The record that asks how many strings a set has."""
    return _COUNT.pack(GET_STRING_COUNT, 0, 1 << which, 0)


def count(record: bytes) -> int:
    """The answer to `count_question`; 0 when the driver has no such set, or one of more than MAX_STRINGS."""
    if len(record) < _COUNT.size:
        return 0
    _command, _reserved, mask, strings = _COUNT.unpack_from(record)
    return int(strings) if mask and strings <= MAX_STRINGS else 0


def strings_question(which: int, strings: int) -> bytes:
    """The record that asks for the strings of a set."""
    return struct.pack("=III", GET_STRINGS, which, strings) + bytes(_STRING * strings)


def strings(record: bytes) -> List[str]:
    """The answer to `strings_question`; empty when the set has changed since it was counted."""
    if len(record) < 12 or len(record) != 12 + _STRING * struct.unpack_from("=8xI", record)[0]:
        return []
    return [_text(record[start : start + _STRING]) for start in range(12, len(record), _STRING)]


def statistics_question(number: int) -> bytes:
    """The record that asks for all counters."""
    return struct.pack("=II", GET_STATISTICS, number) + bytes(8 * number)


def statistics(record: bytes) -> Tuple[int, ...]:
    """The answer to `statistics_question`, in the order of its strings; empty when their number has changed."""
    if len(record) < 8 or len(record) != 8 + 8 * struct.unpack_from("=4xI", record)[0]:
        return ()
    return struct.unpack_from("={}Q".format((len(record) - 8) // 8), record, 8)


def features_question(number: int) -> bytes:
    """The record that asks for the state of so many features."""
    blocks = (number + 31) // 32
    return struct.pack("=II", GET_FEATURES, blocks) + bytes(16 * blocks)


def features(record: bytes, names: Sequence[str]) -> Dict[str, Tuple[bool, bool]]:
    """Feature → whether it is on, and whether it can be switched."""
    states = {}
    for position, name in enumerate(names):
        block = 8 + 16 * (position // 32)
        if name and block + 16 <= len(record):
            available, _requested, active, never = struct.unpack_from("=4I", record, block)
            bit = 1 << position % 32
            states[name] = (bool(active & bit), bool(available & bit) and not never & bit)
    return states


def features_change(names: Sequence[str], values: Dict[str, bool]) -> bytes:
    """The record that switches these features and no other."""
    blocks = [[0, 0] for _block in range((len(names) + 31) // 32)]
    for name, value in values.items():
        position = names.index(name)
        blocks[position // 32][0] |= 1 << position % 32
        blocks[position // 32][1] |= value << position % 32
    flat = [number for block in blocks for number in block]
    return struct.pack("={}I".format(2 + len(flat)), SET_FEATURES, len(blocks), *flat)


def _text(field: bytes) -> str:
    return field.split(b"\0", 1)[0].decode("ascii", "replace")
