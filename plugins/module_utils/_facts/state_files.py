# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What switches the unit on a host off, or lets it export metrics. PRIVATE to the collection."""

from __future__ import annotations

from .._parse.cmdline import LONGEST
from .host import Host

DISABLED = "/etc/nearmetal/disabled"
BAKED = "/run/nearmetal/baked"  # an image is being made of this host, which isn't tuned before its next boot
EXPERIMENT = "/run/nearmetal/prove.json"  # `prove` compares two states of this host, which nothing else may tune
REBOOTS = "/var/lib/nearmetal/prove.json"  # the same, where the host is rebooted between the states
ARGUMENT = "nearmetal=off"
METRICS_VARIABLE = "NEARMETAL_METRICS"  # in the environment of the unit: the directory to which it exports metrics


def compares(host: Host) -> bool:
    """Whether `prove` compares two states of this host."""
    return host.exists(EXPERIMENT) or host.exists(REBOOTS)


def switched_off(host: Host) -> str | None:
    """The file or kernel argument that keeps the unit from running; None when there is none."""
    for path in (DISABLED, BAKED, EXPERIMENT, REBOOTS):
        if host.exists(path):
            return path
    return ARGUMENT if ARGUMENT in (host.text("/proc/cmdline", LONGEST) or "").split() else None
