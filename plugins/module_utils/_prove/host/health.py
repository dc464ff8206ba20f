# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a host still does its work after a switch: by a command, and by the programs that serve the load. PRIVATE."""

from __future__ import annotations

import re
from typing import Sequence

from ..._benchmark.host import load
from ..._error import NearmetalError
from ..._facts.host import Host
from ..._words import printable
from . import load_sample

LIMIT = 10.0  # seconds that the command may take
RESTART_LIMIT = 120.0  # seconds that a restart may take


def require(command: str) -> None:
    """Raise NearmetalError when the host isn't healthy before anything is switched."""
    failed = failure(command)
    if failed:
        raise NearmetalError(
            f"{failed}, before anything was switched: repair the host, or correct the option prove.health"
        )


def ended(host: Host, served: load_sample.Served) -> str:
    """Which programs ended since `served` was observed, in words; empty if none did."""
    names = load_sample.ended(served, load_sample.served(host, tuple(served)))
    return f"{' and '.join(names)} ended or was restarted" if names else ""


def restart(command: str) -> str:
    """Restart what serves the load: how that failed, in one sentence; empty where it didn't, or nothing restarts.

    A list of units is restarted by systemctl, anything else is a command.
    """
    units = command.split()
    if units and all(re.fullmatch(r"[A-Za-z0-9:_.@\\-]+\.service", unit) for unit in units):
        command = f"systemctl restart {' '.join(units)}"
    return _failure("restart", command, RESTART_LIMIT)


def failure(command: str) -> str:
    """How the command failed, in one sentence; empty for a healthy host."""
    return _failure("health", command, LIMIT)


def _failure(name: str, command: str, limit: float) -> str:
    if not command:
        return ""
    ran = load.run(command, limit, lambda: True)
    if ran.end:
        return f"the {name} command didn't end within {limit:g} s"
    lines: Sequence[str] = (ran.message.strip() or ran.output.strip()).splitlines()
    said = f": {printable(lines[-1])[:200]}" if lines else ""
    return f"the {name} command ended with code {ran.code}{said}" if ran.code else ""
