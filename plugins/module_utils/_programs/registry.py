# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs by name. PRIVATE to the collection."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module

from .program import Program
from .without_wishes import PROGRAMS as WITHOUT_WISHES

# File → programs, each a name of the file in capitals: forks, and what has the same source, are in one.
_FILES = {
    "aerospike": ("aerospike",),
    "caddy": ("caddy", "traefik"),
    "cassandra": ("cassandra",),
    "clickhouse": ("clickhouse",),
    "elasticsearch": ("elasticsearch", "opensearch"),
    "hadoop": ("hadoop", "spark"),
    "hana": ("hana",),
    "java": ("java", "shenandoah", "zgc"),
    "mariadb": ("mariadb", "mysql"),
    "mongodb": ("mongodb",),
    "redis": ("keydb", "redis", "valkey"),
    "scylla": ("scylla",),
    "suricata": ("suricata",),
}
_FILE_OF = {name: file for file, names in _FILES.items() for name in names}
NAMES = tuple(sorted((*_FILE_OF, *WITHOUT_WISHES)))


@lru_cache(maxsize=None)
def program_of(name: str) -> Program:
    """The program of one of the NAMES, loaded when it is needed."""
    if name in WITHOUT_WISHES:
        return WITHOUT_WISHES[name]
    program: Program = getattr(import_module(f"{__package__}.{_FILE_OF[name]}"), name.upper())
    return program
