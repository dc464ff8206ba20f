# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What switches the unit on a host off. PRIVATE to the collection."""

from __future__ import annotations

from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse.cmdline import LONGEST

DISABLED = "/etc/nearmetal/disabled"
BAKED = "/run/nearmetal/baked"  # an image is being made of this host: only its next boot is tuned
EXPERIMENT = "/run/nearmetal/prove.json"  # `prove` compares two states of this host: nobody else tunes it meanwhile
ARGUMENT = "nearmetal=off"


def switched_off(host: Host) -> str | None:
    """What keeps the unit from running, as the operator wrote it; None when nothing does."""
    for path in (DISABLED, BAKED, EXPERIMENT):
        if host.exists(path):
            return path
    return ARGUMENT if ARGUMENT in (host.text("/proc/cmdline", LONGEST) or "").split() else None
