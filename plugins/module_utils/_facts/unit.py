# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts about the unit that plans on the host, and whether it can run on it. PRIVATE to the collection."""

from __future__ import annotations

import os
import re
import sys
from typing import NamedTuple, Optional

from . import systemd
from .host import Host
from .state_files import switched_off

AGENT = "/usr/local/lib/nearmetal/nearmetal.pyz"
# With this link systemd starts the timer at boot, and the timer starts the service.
LINK = "/etc/systemd/system/timers.target.wants/nearmetal.timer"
# With this link an older version made the service a part of the boot, which waited for it.
OLDER_LINK = "/etc/systemd/system/multi-user.target.wants/nearmetal.service"

# The second line of the agent: its version and the digest of its sources.
IDENTITY = re.compile(r"[0-9A-Za-z.+-]{1,64} [0-9a-f]{64}", re.ASCII)
_SECOND_LINE = re.compile(r"[^\n]*\n# nearmetal\.ec2 agent ([^\n]*)\n", re.ASCII)
_PYTHON = "/usr/bin/python3"
_NAMED = re.compile(r"python3\.([0-9]{1,3})", re.ASCII)
_OLDEST = 7  # Python 3.7, as for every module
# A Python in these folders, such as /usr/local, is there even when homes aren't mounted.
_AT_BOOT = re.compile(r"/(usr|opt)/[A-Za-z0-9._/+-]{1,200}", re.ASCII)


class UnitFacts(NamedTuple):
    """The unit on this host."""

    systemd: Optional[str]  # booted | installed (an image that isn't running); None without systemd
    version: Optional[int]  # of systemd; None when it can't be found out
    python: Optional[str]  # an interpreter that is there at boot; None when none is new enough
    agent: Optional[str]  # version and digest of the agent; None when it isn't installed
    enabled: Optional[bool]  # whether the timer starts at boot; False: an older version's link starts the service
    switched_off: Optional[str]  # the file or kernel argument that keeps the unit from running


def observe(host: Host) -> UnitFacts:
    """Read whether systemd runs, which Python is there at boot, and which parts of the unit are installed."""
    return UnitFacts(
        systemd=_systemd(host),
        version=systemd.version(host),
        python=_python(host),
        agent=identity(host),
        enabled=enabled(host),
        switched_off=switched_off(host),
    )


def enabled(host: Host) -> Optional[bool]:
    """True when the timer starts at boot, False when an older version's link starts the service, None without links."""
    if host.exists(OLDER_LINK):
        return False
    return True if host.exists(LINK) else None


def identity(host: Host) -> Optional[str]:
    """Version and digest of the agent on the host; None when there is none of nearmetal."""
    head = _SECOND_LINE.match(host.text(AGENT, limit=256) or "")
    return head[1] if head and IDENTITY.fullmatch(head[1]) else None


def _systemd(host: Host) -> Optional[str]:
    if host.exists("/run/systemd/system"):  # sd_booted(3)
        return "booted"
    present = any(host.exists(path) for path in ("/usr/lib/systemd/systemd", "/lib/systemd/systemd"))
    return "installed" if present else None


def _python(host: Host) -> Optional[str]:
    """The distribution's python3, which survives its upgrades; else the interpreter that runs this."""
    path = _PYTHON
    for _hop in range(8):
        target = host.link(path)
        if target is None:
            break
        path = os.path.normpath(os.path.join(os.path.dirname(path), target))
    named = _NAMED.fullmatch(os.path.basename(path))
    if named and int(named[1]) >= _OLDEST and host.exists(path):
        return _PYTHON
    return sys.executable if not host.root and _AT_BOOT.fullmatch(sys.executable) else None
