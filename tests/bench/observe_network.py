# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""CPU time of observing a host of 192 CPUs with 64 queues; the budget is 100 ms for the whole host.

`PYTHONPATH=.ansible/collections:. python -m tests.bench.observe_network` from the root of the project. Each pair
observes, and then opens and reads exactly the files that the observation read, nothing else. The files lie in
memory; no driver answers, so what the ioctls cost is missing, a few microseconds each. Printed, never a test.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Callable, Dict, List, Optional, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import DOMAINS as ALL_DOMAINS
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import observe

from tests.bench.observe import Prefixed
from tests.support.hosts import lay_out
from tests.support.kernel.nics import nic_files
from tests.unit.facts import large

PAIRS = 20
CPUS, QUEUES = 192, 64
ALLOWED = 100.0  # milliseconds, for the whole host
DOMAINS = {
    "the whole host": tuple(ALL_DOMAINS),
    "network": ("network",),
    "network_irq": ("platform", "topology", "network", "irqbalance", "sysctl", "files", "unit"),
}


class Recording(Prefixed):
    """Notes what is read."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.read: List[str] = []

    def _bytes(self, path: str, limit: int, records: bool) -> Optional[bytes]:
        found = super()._bytes(path, limit, records)
        if found is not None:
            self.read.append(self.real(path))
        return found


def files() -> Dict[str, str]:
    """ENA with 64 queues, 32 on each of two interfaces, one per node."""
    nics = [
        {
            "name": f"ens{5 + place}",
            "driver": "ena",
            "place": f"0000:0{place}:05.0",
            "queues": QUEUES // 2,
            "node": place,
        }
        for place in (0, 1)
    ]
    return {**large.host(CPUS), **nic_files(CPUS, nics)}


def plain(paths: List[str]) -> None:
    """Open, read and close each file."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        while os.read(descriptor, 16384):
            continue
        os.close(descriptor)


def cost(function: Callable[[], object]) -> float:
    """CPU time of a function in milliseconds."""
    start = time.process_time()
    function()
    return (time.process_time() - start) * 1000


def pairs(root: str, domains: Tuple[str, ...]) -> Tuple[List[float], List[float], int]:
    """Interleaved costs of observing and of plain reading, and the number of files."""
    recording = Recording(root)
    observe(recording, domains)
    host = Prefixed(root)
    observed_costs, plain_costs = [], []
    for _pair in range(PAIRS):
        observed_costs.append(cost(lambda: observe(host, domains)))
        plain_costs.append(cost(lambda: plain(recording.read)))
    return observed_costs, plain_costs, len(recording.read)


def main() -> None:
    """Print a line per set of facts."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=str(memory) if memory.is_dir() else None) as folder:
        lay_out(Path(folder), files())
        for name, domains in DOMAINS.items():
            observed_costs, plain_costs, number = pairs(folder, domains)
            ratio = statistics.median(observed / other for observed, other in zip(observed_costs, plain_costs))
            print(
                f"{CPUS} CPUs, {QUEUES} queues, {name}: {statistics.median(observed_costs):.1f} ms CPU"
                f" ({min(observed_costs):.1f} to {max(observed_costs):.1f}), allowed {ALLOWED:.0f} for the whole host;"
                f" plain reading of the same {number} files"
                f" {statistics.median(plain_costs):.1f} ms, ratio {ratio:.1f}, median of {PAIRS} interleaved pairs;"
                f" load {os.getloadavg()[0]:.1f}"
            )


if __name__ == "__main__":
    main()
