# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a host still does its work after a switch: by a command, and by the programs that serve the load. PRIVATE."""

from __future__ import annotations

from typing import Sequence

from ..._benchmark.host import load
from ..._error import NearmetalError
from ..._facts.host import Host
from ..._words import printable
from . import load_sample

LIMIT = 10.0  # seconds that the command may take


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


def failure(command: str) -> str:
    """How the command failed, in one sentence; empty for a healthy host."""
    if not command:
        return ""
    ran = load.run(command, LIMIT, lambda: True)
    if ran.end:
        return f"the health command didn't end within {LIMIT:g} s"
    lines: Sequence[str] = (ran.message.strip() or ran.output.strip()).splitlines()
    said = f": {printable(lines[-1])[:200]}" if lines else ""
    return f"the health command ended with code {ran.code}{said}" if ran.code else ""
