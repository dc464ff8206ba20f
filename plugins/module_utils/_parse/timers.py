# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The timers of systemd, as `systemctl show` prints them. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Dict

PROPERTIES = ("Id", "LastTriggerUSecMonotonic")
_MOST = 500  # timers; a host has some ten to thirty
_LONGEST = 255  # characters of a unit's name (UNIT_NAME_MAX in systemd's src/basic/unit-name.h, with a final 0)


def timers(text: str) -> Dict[str, str]:
    """Each timer by its name, with the time since boot at which it last started something, as systemd words it."""
    triggers: Dict[str, str] = {}
    for block in text.split("\n\n"):
        values = dict(line.partition("=")[::2] for line in block.splitlines())
        name, last = (values.get(key, "") for key in PROPERTIES)
        if name.endswith(".timer") and len(name) <= _LONGEST and last and len(triggers) < _MOST:
            triggers[name] = last[:_LONGEST]
    return triggers
