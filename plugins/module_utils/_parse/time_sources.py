# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a host gets its time from, by the configuration of its time service. Pure. PRIVATE to the collection."""

from __future__ import annotations

import re
from collections import Counter
from typing import Dict, Iterator, Tuple

AMAZON = ("169.254.169.123", "fd00:ec2::123")  # EC2 User Guide, Amazon Time Sync Service
PUBLIC = "time.aws.com"
PTP = "PTP device"
OTHER = "another server"

_COMMENT = ("#", "!", ";", "%")
_PTP = re.compile(r"/dev/ptp[A-Za-z0-9_]{1,32}(?::\S{0,64})?", re.ASCII)
_SERVER = re.compile(r"[A-Za-z0-9_.:%-]{1,255}", re.ASCII)


def chrony(text: str) -> Dict[str, int]:
    """Kind of source → how many chrony.conf(5), a file of sources or ntp.conf(5) names."""
    return dict(Counter(_chrony(text)))


def timesyncd(text: str) -> Dict[str, int]:
    """The same for timesyncd.conf(5) and the state of a link of systemd-networkd. An empty NTP= forgets those above."""
    names: Dict[str, Tuple[str, ...]] = {}
    for line in text.splitlines():
        key, sign, value = line.partition("=")
        if sign and key.strip() in ("NTP", "FallbackNTP"):
            servers = tuple(word for word in value.split() if _SERVER.fullmatch(word))
            names[key.strip()] = (*names.get(key.strip(), ()), *servers) if servers else ()
    # Fallback servers are asked only where no other server is known.
    return dict(Counter(_kind(server) for server in names.get("NTP") or names.get("FallbackNTP") or ()))


def render(counts: Dict[str, int]) -> str:
    """Lines of chrony's form and of timesyncd's with as many sources of each kind, and without anybody's servers."""
    place = {AMAZON[0]: AMAZON[0], PUBLIC: PUBLIC, OTHER: "other"}
    lines = []
    for kind, count in counts.items():
        for _number in range(count):
            if kind == PTP:
                lines.append("refclock PHC /dev/ptp0")
            elif kind in place:
                lines += [f"server {place[kind]}", f"NTP={place[kind]}"]
    return "".join(f"{line}\n" for line in lines)


def _chrony(text: str) -> Iterator[str]:
    for line in text.splitlines():
        words = line.split()
        if len(words) < 2 or words[0].startswith(_COMMENT) or "noselect" in words:
            continue
        directive = words[0].lower()
        if directive == "refclock" and len(words) > 2 and words[1].upper() == "PHC" and _PTP.fullmatch(words[2]):
            yield PTP
        elif directive in ("server", "pool", "peer") and _SERVER.fullmatch(words[1]):
            yield _kind(words[1])


def _kind(server: str) -> str:
    if server in AMAZON:
        return AMAZON[0]
    return PUBLIC if server.lower().rstrip(".").endswith(PUBLIC) else OTHER
