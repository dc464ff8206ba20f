# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel log since boot, wherever it still is. PRIVATE to the collection."""

from __future__ import annotations

from typing import Optional

from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import kernel_log


def since_boot(host: Host) -> Optional[str]:
    """The kernel log since boot, as far as it is still there; None when neither place can be read.

    The ring may have lost the boot's beginning; some distributions keep that in /var/log/dmesg.
    """
    ring = host.records("/dev/kmsg")
    if ring is not None and kernel_log.first_sequence(ring) == 0:
        return ring
    saved = host.text("/var/log/dmesg")
    if ring is None or saved is None:
        return ring if saved is None else saved
    return saved + "\n" + ring
