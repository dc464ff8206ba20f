# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
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
from . import walk

FOLDER = "/usr/local/lib/nearmetal"
UNSUITED = 2  # the exit status of an agent that has done nothing, because the module must read the options itself


def cache_name() -> str:
    """The file's name beside the agent; another version of Python has its own."""
    return f"nearmetal.{sys.implementation.cache_tag}.zip"


def opened(mark: str, root: str = "/") -> Optional[int]:
    """A descriptor of the cache that begins with this mark and that only root can change; None without one."""
    try:
        descriptor = walk.open_file(root, f"{FOLDER}/{cache_name()}")
    except NearmetalError:
        return None
    if descriptor is None:
        return None
    expected = mark.encode()
    with suppress(OSError):  # a broken disk
        if walk.is_closed(descriptor) and os.pread(descriptor, len(expected), 0) == expected:
            return descriptor
    os.close(descriptor)
    return None
