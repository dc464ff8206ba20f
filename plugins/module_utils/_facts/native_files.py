# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts about the configuration files that nearmetal itself keeps on a host. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Mapping

from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host

# The first line of each file of ours; a file of that name without it belongs to somebody else.
MARK = "# Written by nearmetal.ec2"
FOLDERS = ("/etc/tmpfiles.d",)
PATHS = re.compile(r"/etc/tmpfiles\.d/nearmetal-[a-z_]{1,32}\.conf")


def observe_files(host: Host) -> Mapping[str, str]:
    """Path → text of each file of ours that exists."""
    found = {}
    for folder in FOLDERS:
        for name in host.names(folder):
            path = f"{folder}/{name}"
            text = host.text(path) if PATHS.fullmatch(path) else None
            if text is not None:
                found[path] = text
    return found
