# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""connections PORT WAIT LONGEST: end when the clients of a port have come and gone, and print how many there were.

A program of its own, started beside the server of a benchmark whose load comes from another host; it imports nothing
but the standard library. It ends after WAIT seconds without a client, and after LONGEST seconds with one.
"""

from __future__ import annotations

import json
import sys
import time

_ESTABLISHED = "01"
_LOOK = 0.2  # seconds between two looks
_QUIET = 5.0  # seconds without a connection after which the load is over: it may be two programs, one after the other
TABLES = ("/proc/net/tcp", "/proc/net/tcp6")


def connections(port: int) -> int:
    """How many connections the port has now, those of this host left out that come from the port itself."""
    count = 0
    for table in TABLES:
        try:
            with open(table, encoding="ascii") as stream:
                rows = [line.split() for line in stream][1:]
        except OSError:
            continue
        count += sum(row[3] == _ESTABLISHED and row[1].endswith(f":{port:04X}") for row in rows if len(row) > 3)
    return count


def main(port: int, wait: float, longest: float) -> None:
    """Wait, and print the most connections that there were at once."""
    most, until, quiet_since = 0, time.monotonic() + wait, 0.0
    while time.monotonic() < until:
        now = connections(port)
        if now and not most:
            until = time.monotonic() + longest
        most = max(most, now)
        if now or not most:
            quiet_since = time.monotonic()
        elif time.monotonic() - quiet_since > _QUIET:
            break
        time.sleep(_LOOK)
    sys.stdout.write(json.dumps({"connections": most}) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]))
