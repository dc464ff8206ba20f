# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Elasticsearch and OpenSearch. PRIVATE to the collection."""

from __future__ import annotations

from typing import Tuple

from .program import UNLIMITED, Check, Page, Program, Wish

_GUIDE = Page(reference="Elasticsearch guide", read="2026-11-28", again="2027-11-28")
_OLDER = Page(reference="Elasticsearch guide 8.15", read="2026-11-28", again="2027-11-28")
_SWAPPING = Page(reference="Elasticsearch guide, swapping", read="2026-11-27", again="2027-11-27")
_RETRIES = Page(reference="Elasticsearch guide, TCP retries", read="2026-11-27", again="2027-11-27")
_CHECKS = Page(reference="Elasticsearch, bootstrap checks", read="2026-11-27", again="2027-11-27")
_FORK = Page(reference="OpenSearch guide", read="2026-11-27", again="2027-11-27")
_CHECKS_OF_FORK = Page(reference="OpenSearch, bootstrap checks", read="2026-11-27", again="2027-11-27")
_REFUSES = "it doesn't start"


def _bootstrap_checks(page: Page) -> Tuple[Check, ...]:
    """What Elasticsearch and its fork look at where they listen beyond this host; `page` is that of the fork."""
    least = {"Max open files": 65535, "Max processes": 4096, "vm.max_map_count": 262144}
    least.update({"Max address space": UNLIMITED, "Max file size": UNLIMITED})
    return tuple(Check(what, number, page, _REFUSES) for what, number in least.items())


ELASTICSEARCH = Program(
    "Elasticsearch",
    "jvm",
    (
        Wish("memory.max_map_count", 262144, "indexes are mapped file by file, and with less it doesn't start", _OLDER),
        Wish("memory.max_map_count", 1048576, "its guide asks for four times as much now", _GUIDE, since="8.16"),
        Wish(
            "memory.swappiness",
            1,
            "where swap can't be off: a collection that touches a heap in swap stops the node",
            _SWAPPING,
        ),
        Wish(
            "network_stack.tcp_retries",
            5,
            "a node that is gone is noticed after seconds, not after a quarter of an hour",
            _RETRIES,
        ),
    ),
    processes=("elasticsearch",),
    packages=("elasticsearch",),
    checks=_bootstrap_checks(_CHECKS),
    left="no swap, or a locked heap; 65,535 open files",
)

OPENSEARCH = Program(
    "OpenSearch",
    "jvm",
    (Wish("memory.max_map_count", 262144, "indexes are mapped file by file, and with less it doesn't start", _FORK),),
    processes=("opensearch",),
    packages=("opensearch",),
    checks=_bootstrap_checks(_CHECKS_OF_FORK),
    left="no swap, or a locked heap; 65,536 open files",
)
