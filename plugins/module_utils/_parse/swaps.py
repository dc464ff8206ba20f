# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""/proc/swaps, and how busy /proc/diskstats says that a disk was. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Dict, List, Optional

_SWAP = r"(/\S{0,4096})\s+(partition|file)\s+[0-9]{1,20}\s+[0-9]{1,20}\s+-?[0-9]{1,10}\s*"
_DEVICE = r"/dev/([A-Za-z0-9_-]{1,32})"
# Major and minor number, name, and ten counters of which the tenth is the milliseconds in which it was in use.
_DISK = r" *[0-9]{1,5} +[0-9]{1,7} ([A-Za-z0-9_-]{1,32})(?: [0-9]{1,20}){9} ([0-9]{1,20})(?: [0-9]{1,20})*"


def parse(text: str) -> Optional[List[str]]:
    """The name of each swap area's device, nvme0n1p2, and "" for a file; None when the text isn't the kernel's."""
    lines = text.splitlines()
    if not lines or not lines[0].startswith("Filename"):
        return None
    devices = []
    for line in lines[1:]:
        match = re.fullmatch(_SWAP, line, re.ASCII)
        if match is not None:
            device = re.fullmatch(_DEVICE, match[1], re.ASCII) if match[2] == "partition" else None
            devices.append(device[1] if device is not None else "")
    return devices


def render(areas: List[str]) -> str:
    """A table with these areas, without the paths of files and with zeros for the sizes."""
    rows = (f"/dev/{name} partition 0 0 0\n" if name else "/file file 0 0 0\n" for name in areas)
    return "Filename Type Size Used Priority\n" + "".join(rows)


def in_use(text: str) -> Dict[str, int]:
    """Disk or partition → milliseconds since boot in which it had requests."""
    matches = (re.fullmatch(_DISK, line) for line in text.splitlines())
    return {match[1]: int(match[2]) for match in matches if match is not None}


def disk_of(device: str, disks: Dict[str, int]) -> str:
    """The disk that a partition is on: nvme0n1 for nvme0n1p2; the device itself when it is none."""
    for disk in disks:
        number = "p[0-9]{1,3}" if disk[-1].isdigit() else "[0-9]{1,3}"
        if re.fullmatch(re.escape(disk) + number, device):
            return disk
    return device
