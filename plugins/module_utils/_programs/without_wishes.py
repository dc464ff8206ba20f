# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs of which no page of their maintainers was found that asks for a setting of nearmetal. PRIVATE."""

from __future__ import annotations

from typing import Mapping

from .program import Check, Page, Program

_KAFKA = Page(reference="Kafka guide, hardware and OS", read="2026-11-28", again="2027-11-28")
_POSTGRESQL = Page(reference="PostgreSQL, its open files", read="2026-11-28", again="2027-11-28")
_TRINO = Page(reference="Trino, checks at start", read="2026-11-28", again="2027-11-28")

PROGRAMS: Mapping[str, Program] = {
    "apache": Program("Apache httpd", "web", processes=("apache2", "httpd"), packages=("apache2", "httpd")),
    "dragonfly": Program(
        "Dragonfly",
        "in_memory_database",
        processes=("dragonfly",),
        packages=("dragonfly",),
        left="locked memory without a limit, which its guide gives its container; no swap, of which it warns at its"
        " start",
    ),
    "envoy": Program("Envoy", "web", processes=("envoy",), packages=("envoy",)),
    "flink": Program("Apache Flink", "analytics", processes=("flink",)),
    "haproxy": Program(
        "HAProxy",
        "web",
        processes=("haproxy",),
        packages=("haproxy",),
        left="interrupts on cores of their own, which depends on its `cpu-map`: see `network_irq.policy`. A maintainer "
        "calls irqbalance counter-productive. A limit of open files of twice its `maxconn`: it doesn't start with less",
    ),
    "kafka": Program(
        "Apache Kafka",
        "jvm",
        processes=("kafka",),
        checks=(
            Check("Max open files", 100000, _KAFKA, "its guide asks for more, though it says nothing at its start"),
        ),
        left="two mapped areas per segment of a log: `memory.max_map_count` depends on your topics, and `jvm` sets"
        " 1,048,576. `noatime` for its file systems, and larger socket buffers for links between data centers",
    ),
    "memcached": Program(
        "memcached",
        "cache",
        processes=("memcached",),
        packages=("memcached",),
        left="a hard limit of open files that is as large as its `-c`: it doesn't start with less",
    ),
    "mpi": Program(
        "MPI",
        "hpc",
        left="over EFA: huge pages, which AWS's installer of EFA reserves, and locked memory without a limit",
    ),
    "nginx": Program(
        "nginx",
        "web",
        processes=("nginx",),
        packages=("nginx",),
        left="`worker_rlimit_nofile` or `LimitNOFILE=`, of at least its `worker_connections`: it warns of less",
    ),
    "pbs": Program("OpenPBS", "hpc", processes=("pbs_mom",)),
    "postgresql": Program(
        "PostgreSQL",
        "nvme_storage",
        processes=("postgres",),
        packages=("postgresql",),
        checks=(Check("Max open files", 58, _POSTGRESQL, "it doesn't start"),),
        left="`hugepages.pages`, as many as `postgres -C shared_memory_size_in_huge_pages` prints:"
        " with `huge_pages = on` it doesn't start without them; `memory.overcommit: never` lowers the chance that the"
        " kernel kills it, if swap and ratio fit the host",
    ),
    "slurm": Program(
        "Slurm",
        "hpc",
        processes=("slurmd",),
        packages=("slurmd", "slurm-slurmd"),
        left="`slurm.conf` names the CPUs that `slurmd -C` prints after the run",
    ),
    "trino": Program(
        "Trino",
        "analytics",
        processes=("trino",),
        checks=(
            Check("Max open files", 8192, _TRINO, "it warns at its start, and with fewer than 4,096 it doesn't start"),
        ),
        left="131,072 open files and 128,000 processes for its user, by its guide",
    ),
    "varnish": Program(
        "Varnish",
        "web",
        processes=("varnishd",),
        packages=("varnish",),
        left="its notes on platforms ask for no huge pages on RHEL 6, and say nothing of later systems",
    ),
}
