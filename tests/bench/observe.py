# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""CPU time of observing a host of 192 CPUs; the budget is 100 ms.

Run it with PYTHONPATH=.ansible/collections:. from the root of the project.
The files lie in memory below a folder; a real sysfs makes its texts on each read, so the same
is measured on this machine with its own number of CPUs. Printed, never a test.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import DOMAINS, observe
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host

from tests.unit.facts import large

RUNS = 30


class Prefixed(Host):
    """Another root without the search for links that lead out of it, which a host's own root doesn't have either."""

    def real(self, path: str) -> str:
        return self.root + path


def cost(host: Host, *domains: str) -> float:
    """The median CPU time of one observation in milliseconds."""
    times = []
    for _run in range(RUNS):
        start = time.process_time()
        observe(host, domains)
        times.append((time.process_time() - start) * 1000)
    return statistics.median(times)


def main() -> None:
    """Print a line per host and domain."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=str(memory) if memory.is_dir() else None) as folder:
        for cpus in (192, 384):
            root = Path(folder) / str(cpus)
            for name, text in large.host(cpus).items():
                path = root / name.lstrip("/")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            print(
                "{} CPUs, files in memory: all domains {:.1f} ms CPU".format(cpus, cost(Prefixed(str(root)), *DOMAINS))
            )
    for domain in DOMAINS:
        print("this machine: {} {:.2f} ms CPU".format(domain, cost(Host(), domain)))
    print("median of {} runs".format(RUNS))


if __name__ == "__main__":
    main()
