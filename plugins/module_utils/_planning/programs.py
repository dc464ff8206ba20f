# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running programs that are signs of a workload: program → workload, with the reason. Data only. PRIVATE."""

from __future__ import annotations

from typing import Mapping, NamedTuple

PAGE = "docs/programs.md"  # what the maintainers of a program ask for, and how it is combined


class Sign(NamedTuple):
    """The workload that a program is a sign of."""

    workload: str
    reason: str
    listens: bool = False  # a sign only if it listens on a port: else it may be a tool that somebody started


# In the order in which several workloads of one host are combined: the later workload wins, so those that ask for more
# come later.
SIGNS: Mapping[str, Sign] = {
    "java": Sign("jvm", "a Java virtual machine that serves others", listens=True),
    "cassandra": Sign("jvm", "a database on a Java virtual machine", listens=True),
    "elasticsearch": Sign("jvm", "a search engine on a Java virtual machine", listens=True),
    "kafka": Sign("jvm", "a log of messages on a Java virtual machine", listens=True),
    "opensearch": Sign("jvm", "a search engine on a Java virtual machine", listens=True),
    "apache2": Sign("web", "it answers many connections"),
    "caddy": Sign("web", "it answers many connections"),
    "envoy": Sign("web", "it passes on many connections"),
    "haproxy": Sign("web", "it passes on many connections"),
    "httpd": Sign("web", "it answers many connections"),
    "nginx": Sign("web", "it answers or passes on many connections"),
    "traefik": Sign("web", "it passes on many connections"),
    "varnishd": Sign("web", "it answers many connections, or passes them on"),
    "suricata": Sign("packet_appliance", "it inspects packets"),
    "clickhouse-server": Sign("analytics", "it scans tables"),
    "flink": Sign("analytics", "it computes on streams, with shuffles between hosts"),
    "hadoop": Sign("analytics", "it scans files, with shuffles between hosts"),
    "spark": Sign("analytics", "it scans files, with shuffles between hosts"),
    "trino": Sign("analytics", "it scans tables, with shuffles between hosts"),
    "mariadbd": Sign("nvme_storage", "a database whose requests go to its disks"),
    "mongod": Sign("nvme_storage", "a database whose requests go to its disks"),
    "mysqld": Sign("nvme_storage", "a database whose requests go to its disks"),
    "postgres": Sign("nvme_storage", "a database whose requests go to its disks"),
    "scylla": Sign("nvme_storage", "a database whose requests go to its disks"),
    "memcached": Sign("cache", "it answers small requests from memory"),
    "asd": Sign("in_memory_database", "Aerospike, which answers small requests from memory"),
    "dragonfly": Sign("in_memory_database", "it answers small requests from memory, and forks to save"),
    "keydb-server": Sign("in_memory_database", "it answers small requests from memory, and forks to save"),
    "redis-server": Sign("in_memory_database", "it answers small requests from memory, and forks to save"),
    "valkey-server": Sign("in_memory_database", "it answers small requests from memory, and forks to save"),
    "pbs_mom": Sign("hpc", "a batch system starts parallel programs on this host"),
    "slurmd": Sign("hpc", "a batch system starts parallel programs on this host"),
    "hdbindexserver": Sign("sap_hana", "the index server of SAP HANA"),
}
