# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts about where a host gets its time from, by its files; the time service itself isn't asked. PRIVATE."""

from __future__ import annotations

import re
from typing import Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple

from .._parse import time_sources
from . import systemd
from .host import Host

PTP = "/sys/class/ptp"
# Kinds of sources that the concern asks for.
AMAZON, PTP_DEVICE = time_sources.AMAZON, time_sources.PTP
_LINKS = "/run/systemd/netif/links"
# A link without servers of its own. In a configuration the same line forgets the servers above.
_NO_SERVERS = r"^NTP=[ \t]*$"
# Unit → time service.
UNITS: Mapping[str, str] = {
    "chronyd.service": "chrony",
    "chrony.service": "chrony",
    "systemd-timesyncd.service": "systemd-timesyncd",
    "ntpd.service": "ntpd",
    "ntpsec.service": "ntpd",
    "ntp.service": "ntpd",
}
# Time service → its files, and folders with the files' endings. Distributions differ in the places.
_FILES: Mapping[str, Tuple[str, ...]] = {
    "chrony": ("/etc/chrony.conf", "/etc/chrony/chrony.conf"),
    "systemd-timesyncd": ("/usr/lib/systemd/timesyncd.conf", "/etc/systemd/timesyncd.conf"),
    "ntpd": ("/etc/ntp.conf", "/etc/ntpsec/ntp.conf"),
}
_FOLDERS: Mapping[str, Tuple[Tuple[str, str], ...]] = {
    "chrony": (
        ("/etc/chrony.d", ".conf"),
        ("/etc/chrony.d", ".sources"),
        ("/run/chrony.d", ".sources"),
        ("/etc/chrony/conf.d", ".conf"),
        ("/etc/chrony/sources.d", ".sources"),
    ),
    "systemd-timesyncd": (
        ("/usr/lib/systemd/timesyncd.conf.d", ".conf"),
        ("/run/systemd/timesyncd.conf.d", ".conf"),
        ("/etc/systemd/timesyncd.conf.d", ".conf"),
        (_LINKS, ""),  # what DHCP named
    ),
    "ntpd": (),
}
_LONGEST = 65536


class TimeSourceFacts(NamedTuple):
    """The time service that runs, and what it is configured to follow."""

    service: Optional[str]  # chrony | systemd-timesyncd | ntpd; None: none of them runs, or it can't be seen
    visible: bool  # whether control groups show which services run
    sources: Mapping[str, int]  # kind of source → how many, in the words of _parse/time_sources.py
    devices: Tuple[str, ...]  # PTP devices: ena, or other


def observe(host: Host) -> TimeSourceFacts:
    """Read which time service runs, its configuration, and the PTP devices."""
    running = [name for unit, name in UNITS.items() if systemd.runs(host, unit)]
    service = running[0] if running else None
    clocks = [host.line(f"{PTP}/{name}/clock_name") or "" for name in host.names(PTP)]
    return TimeSourceFacts(
        service=service,
        visible=any(map(host.exists, systemd.GROUPS)),
        sources=_sources(host, service) if service is not None else {},
        devices=tuple(sorted("ena" if clock.startswith("ena-ptp-") else "other" for clock in clocks)),
    )


def _sources(host: Host, service: str) -> Mapping[str, int]:
    paths: List[str] = list(_FILES[service])
    for folder, ending in _FOLDERS[service]:
        paths += [f"{folder}/{name}" for name in host.names(folder)[:64] if name.endswith(ending)]
    parse: Callable[[str], Dict[str, int]] = time_sources.chrony
    if service == "systemd-timesyncd":
        parse = time_sources.timesyncd
    return parse("\n".join(_text(host, path) for path in paths))


def _text(host: Host, path: str) -> str:
    text = host.text(path, _LONGEST) or ""
    return re.sub(_NO_SERVERS, "", text, flags=re.ASCII | re.MULTILINE) if path.startswith(_LINKS) else text
