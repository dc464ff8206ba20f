# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host of tests/hosts as it boots, with what its NIC drivers answer."""

from __future__ import annotations

from pathlib import Path
from typing import Dict, List

from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of

# As /proc/net/route: interface, destination, gateway, flags, three counts, mask, three more.
ROUTE = "\t".join(["{}", "00000000", "0100000A", "0003", "0", "0", "512", "00000000", "0", "0", "0"]) + "\n"


def fresh(root: Path, name: str) -> FakeKernel:
    """A host as it boots: the first NIC has the default route, ENA adapts and has its rings, ixgbevf has its own."""
    return booted(root, files_of(name))


def booted(root: Path, files: Dict[str, str]) -> FakeKernel:
    """The same for a host of these files."""
    host = FakeKernel(root, routed(files))
    probe(host)
    return host


def routed(files: Dict[str, str]) -> Dict[str, str]:
    """The files with a default route through the first NIC."""
    nics = nics_of(files)
    return {**files, **({"/proc/net/route": ROUTE.format(nics[0])} if nics else {})}


def nics_of(files: Dict[str, str]) -> List[str]:
    """The names of the NICs."""
    return sorted({path.split("/")[4] for path in files if path.startswith("/sys/class/net/")})


def probe(host: FakeKernel) -> None:
    """What each NIC's driver chooses when it finds its device."""
    probe_only(host, nics_of(host.hardware))


def probe_only(host: FakeKernel, names: List[str]) -> None:
    """The same for NICs that came now; other devices have no driver's table."""
    files = host.hardware
    for nic in set(names).intersection(nics_of(files)):
        driver = files[_driver_of(files, nic)].rsplit("/", 1)[1]
        queues = sum(path.startswith(f"/sys/class/net/{nic}/queues/rx-") and "rps_cpus" in path for path in files)
        if driver == "ena":
            host.nics.channels[nic] = [queues, queues]
            host.nics.rings[nic] = [16384, 1024, 1024, 1024]
            host.nics.coalesce[nic] = [20, 0, 0, 0, 64, 0, 0, 0, 0, 1, *[0] * 12]
        elif driver == "ixgbevf":
            host.nics.rings[nic] = [4096, 4096, 512, 512]
            host.nics.coalesce[nic] = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, *[0] * 12]


def _driver_of(files: Dict[str, str], nic: str) -> str:
    """The path of a NIC's link to its driver."""
    place = files[f"/sys/class/net/{nic}/device"].rsplit("/", 1)[1]
    return next(path for path in files if path.endswith(f"/{place}/driver"))
