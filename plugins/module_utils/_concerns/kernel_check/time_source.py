# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""kernel_check: whether the clock follows Amazon's time. Pure. PRIVATE to the collection."""

from __future__ import annotations

from ..._facts.time_source import AMAZON, PTP_DEVICE, TimeSourceFacts
from ..._plan import Plan
from ..._planning.knob import Knob

SOURCE = Knob("kernel_check", "time_source", reference="EC2 User Guide, Amazon Time Sync Service")

_SERVER = f"server {AMAZON[0]} prefer iburst minpoll 4 maxpoll 4"


def time_source(facts: TimeSourceFacts, on_ec2: bool) -> Plan:
    """What the time service is configured to follow; whether it does so only the service knows (chronyc sources)."""
    wanted = f"{AMAZON[0]} or a PTP device"
    if facts.service is None:
        if not facts.visible:
            return SOURCE.says("unknown", "systemd's control groups don't show which time service runs", None, wanted)
        reason = "neither chrony nor systemd-timesyncd nor ntpd runs, so nothing keeps the clock right: install chrony"
        return SOURCE.says("advice", reason, None, wanted)
    if not facts.sources:
        reason = f"{facts.service} runs, and no file that nearmetal reads names its sources"
        return SOURCE.says("unknown", reason, facts.service, wanted)
    sources = f"{facts.service}: {', '.join(sorted(facts.sources))}"
    if PTP_DEVICE in facts.sources:
        return SOURCE.says("ok", f"{facts.service} is set to follow a PTP device of this host", sources, wanted)
    if AMAZON[0] in facts.sources:
        also = "; the host's ENA has a PTP clock, which is more accurate" if "ena" in facts.devices else ""
        return SOURCE.says(
            "ok", f"{facts.service} is set to follow the Amazon Time Sync Service{also}", sources, wanted
        )
    if not on_ec2:
        return SOURCE.says("not_applicable", "Amazon's time service answers on EC2 alone", sources)
    line = f"NTP={AMAZON[0]} to timesyncd.conf" if facts.service == "systemd-timesyncd" else f"`{_SERVER}`"
    reason = (
        f"{facts.service} follows other servers; the Amazon Time Sync Service answers on the host's own link and needs"
        f" no internet: add {line}; don't mix it with servers that treat leap seconds differently"
    )
    return SOURCE.says("advice", reason, sources, wanted)
