# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs by name. PRIVATE to the collection."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module

from .program import Program
from .without_wishes import PROGRAMS as WITHOUT_WISHES

NAMES = (
    "aerospike",
    "apache",
    "caddy",
    "cassandra",
    "clickhouse",
    "dragonfly",
    "elasticsearch",
    "envoy",
    "flink",
    "hadoop",
    "hana",
    "haproxy",
    "java",
    "kafka",
    "keydb",
    "mariadb",
    "memcached",
    "mongodb",
    "mpi",
    "mysql",
    "nginx",
    "opensearch",
    "pbs",
    "postgresql",
    "redis",
    "scylla",
    "shenandoah",
    "slurm",
    "spark",
    "suricata",
    "traefik",
    "trino",
    "valkey",
    "varnish",
    "zgc",
)


@lru_cache(maxsize=None)
def program_of(name: str) -> Program:
    """The program of one of the NAMES, loaded when it is needed."""
    program: Program = WITHOUT_WISHES.get(name) or import_module(f"{__package__}.{name}").PROGRAM
    return program
