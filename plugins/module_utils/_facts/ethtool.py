# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a NIC's driver reports: queues, rings, coalescing, offloads, counters. PRIVATE to the collection.

It is asked by the ioctl, in this process. Each function returns None for what the driver doesn't know.
"""

from __future__ import annotations

from typing import Dict, List, Optional, Sequence, Tuple

from .._parse import ethtool
from .host import Host

# The kernel's names (netdev_features_strings) of offloads that determine the cost of a packet.
OFFLOADS = (
    "tx-scatter-gather",
    "tx-checksum-ip-generic",
    "tx-checksum-ipv4",
    "tx-checksum-ipv6",
    "tx-tcp-segmentation",
    "tx-tcp6-segmentation",
    "tx-generic-segmentation",
    "rx-gro",
    "rx-lro",
    "rx-checksum",
    "rx-hashing",
    "rx-ntuple-filter",
)
_MOST_QUEUES = 8192  # as many as x86's kernel has CPUs (NR_CPUS of CONFIG_MAXSMP); ENA has 128
COALESCE = ("adaptive_rx", "adaptive_tx", "rx_usecs", "tx_usecs", "rx_frames", "tx_frames")
# Counters since the driver was loaded or reset, but this one is a gauge (docs/ec2.md#ena).
CONNTRACK_AVAILABLE = "conntrack_allowance_available"
ALLOWANCES = (
    "bw_in_allowance_exceeded",
    "bw_out_allowance_exceeded",
    "pps_allowance_exceeded",
    "conntrack_allowance_exceeded",
    "linklocal_allowance_exceeded",
    CONNTRACK_AVAILABLE,
)


def driver(host: Host, device: str) -> Optional[Tuple[str, str]]:
    """Name and version of the driver."""
    record = host.ethtool(device, ethtool.DRIVER_QUESTION)
    return ethtool.driver(record) if record is not None else None


def permanent_address(host: Host, device: str) -> Optional[str]:
    """The hardware's own address, whichever the interface uses."""
    record = host.ethtool(device, ethtool.ADDRESS_QUESTION)
    return ethtool.address(record) if record is not None else None


def channels(host: Host, device: str) -> Optional[Dict[str, int]]:
    """Queues now (rx, tx, combined) and at most (…_max); None too of a driver that counts more than any device has."""
    numbers = _numbers(host, device, ethtool.GET_CHANNELS, ethtool.CHANNELS)
    return numbers if numbers and max(numbers.values()) <= _MOST_QUEUES else None


def rings(host: Host, device: str) -> Optional[Dict[str, int]]:
    """Descriptors per queue now (rx, tx) and at most (rx_max, tx_max)."""
    numbers = _numbers(host, device, ethtool.GET_RINGS, ethtool.RINGS)
    return {name: numbers[name] for name in ("rx", "tx", "rx_max", "tx_max")} if numbers else None


def coalesce(host: Host, device: str) -> Optional[Dict[str, int]]:
    """Interrupt moderation: microseconds, frames, and whether it adapts (1 or 0)."""
    numbers = _numbers(host, device, ethtool.GET_COALESCE, ethtool.COALESCE)
    return {name: numbers[name] for name in COALESCE} if numbers else None


def feature_names(host: Host, device: str) -> List[str]:
    """The kernel's names of all features, in its order."""
    return _strings(host, device, ethtool.FEATURES)


def offloads(host: Host, device: str, names: Sequence[str]) -> Optional[Dict[str, Tuple[bool, bool]]]:
    """Offload → whether it is on, and whether it can be switched. `names` are those of `feature_names`."""
    record = host.ethtool(device, ethtool.features_question(len(names))) if names else None
    if record is None:
        return None
    features = ethtool.features(record, names)
    return {name: features[name] for name in OFFLOADS if name in features}


def allowances(host: Host, device: str) -> Optional[Dict[str, int]]:
    """Counter → packets that ENA queued or dropped because they exceeded an allowance of the instance type."""
    names = _strings(host, device, ethtool.STATISTICS)
    if not any(name in ALLOWANCES for name in names):
        return None
    record = host.ethtool(device, ethtool.statistics_question(len(names)))
    counters = ethtool.statistics(record) if record is not None else ()
    return {name: value for name, value in zip(names, counters) if name in ALLOWANCES} or None


def _numbers(host: Host, device: str, command: int, names: Sequence[str]) -> Optional[Dict[str, int]]:
    record = host.ethtool(device, ethtool.question(command, len(names)))
    return (ethtool.numbers(record, names) or None) if record is not None else None


def _strings(host: Host, device: str, which: int) -> List[str]:
    answer = host.ethtool(device, ethtool.count_question(which))
    number = ethtool.count(answer) if answer is not None else 0
    record = host.ethtool(device, ethtool.strings_question(which, number)) if number else None
    return ethtool.strings(record) if record is not None else []
