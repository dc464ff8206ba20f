# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of a benchmark that depend on this host. PRIVATE to the collection."""

from __future__ import annotations

from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmarks.benchmark import Benchmark, Machine, Options
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts import topology
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host


def fitted(host: Host, benchmark: Benchmark, options: Options) -> Options:
    """The options with what the user left out and this host knows."""
    if benchmark.fit is None:
        return options
    cpus = topology.observe(host).cpus_online or (0,)
    return benchmark.fit(options, Machine(len(cpus), topology.largest_cache_kib(host, cpus[0])))
