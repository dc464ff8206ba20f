# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The installed agent, compiled by this host's Python, and whether it may be run. PRIVATE to the collection.

A module that runs it imports only this and `walk`, because Python compiles what Ansible sends in each run.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Optional

from .._error import NearmetalError
from . import safe_path

FOLDER = "/usr/local/lib/nearmetal"
AGENT = "nearmetal.pyz"


def cache_name() -> str:
    """The file's name beside the agent; another version of Python has its own."""
    return f"nearmetal.{sys.implementation.cache_tag}.zip"


def opened(mark: str, root: str = "/") -> Optional[int]:
    """A descriptor of the cache; None unless it and the agent have this mark, and only root can change them."""
    agent = opened_file(AGENT, mark, root)
    if agent is None:
        return None
    os.close(agent)
    return opened_file(cache_name(), mark, root)


def opened_file(name: str, mark: str, root: str) -> Optional[int]:
    """A descriptor of the agent or its cache; None unless it has this mark, and only root can change it."""
    descriptor = None
    with suppress(NearmetalError):  # something else has its place
        descriptor = safe_path.open_file(root, f"{FOLDER}/{name}")
    if descriptor is None:
        return None
    with suppress(OSError):  # a broken disk
        first = os.pread(descriptor, 256, 0).splitlines(keepends=True)[:2]
        if safe_path.is_closed(descriptor) and mark.encode() in first:
            return descriptor
    os.close(descriptor)
    return None
