# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of a benchmark that depend on this host. PRIVATE to the collection."""

from __future__ import annotations

import os
from typing import Tuple

from ..._facts import topology
from ..._facts.host import Host
from ..._parse.kernel_counters import parse_meminfo
from ..tools.benchmark import Benchmark, Machine, Options

Cpus = Tuple[int, ...]


def fit(host: Host, benchmark: Benchmark, options: Options) -> Options:
    """The options with what the user left out and this host knows."""
    if benchmark.fit is None:
        return options
    known = topology.observe(host)
    cpus = known.cpus_online or (0,)
    of_server, of_client = halves(known.cores or tuple((cpu,) for cpu in cpus))
    counts = (len(of_server) or len(cpus), len(of_client) or len(cpus))
    memory = parse_meminfo(host.text("/proc/meminfo") or "").get("MemAvailable") or 0  # bytes
    cache = topology.largest_cache_kib(host, cpus[0])
    return benchmark.fit(options, Machine(len(cpus), cache, *counts, memory // (1024 * 1024)))


def divide_cpus(host: Host) -> Tuple[Cpus, Cpus]:
    """The CPUs of the server and of the load that share this host, of those that this process may use."""
    allowed = os.sched_getaffinity(0)
    cores = topology.observe(host).cores or tuple((cpu,) for cpu in sorted(allowed))
    allowed_cores = (tuple(cpu for cpu in core if cpu in allowed) for core in cores)
    return halves(tuple(core for core in allowed_cores if core))


def halves(cores: Tuple[Cpus, ...]) -> Tuple[Cpus, Cpus]:
    """Half of the cores each, the load one more of an odd number, because a busy client would be the limit.

    The threads of a single core are divided. Of a single CPU, neither has one of its own.
    """
    parts = cores if len(cores) > 1 else tuple((cpu,) for core in cores for cpu in core)
    half = len(parts) // 2
    if not half:
        return (), ()
    first, second = ([cpu for core in share for cpu in core] for share in (parts[:half], parts[half:]))
    return tuple(sorted(first)), tuple(sorted(second))
