# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts about nearmetal's own configuration files on a host. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Mapping, Optional

from .host import Host

# The first line of each file of nearmetal, the second of a script; a file without it belongs to somebody else.
MARK = "# Written by nearmetal.ec2"
NETWORKD = "/etc/systemd/networkd.conf.d/90-nearmetal-network_routes.conf"
FOLDERS = ("/etc/tmpfiles.d", "/etc/sysctl.d", "/etc/udev/rules.d")
SERVICE = "/etc/systemd/system/nearmetal.service"
TIMER = "/etc/systemd/system/nearmetal.timer"
RULES = "/etc/udev/rules.d/90-nearmetal.rules"
LAUNCHER = "/usr/local/sbin/nearmetal"
GENERATOR = "/etc/systemd/system-generators/nearmetal-numa"
# Beside the command, because SELinux, too, takes this folder as one of programs.
IRQBALANCE_POLICY = "/usr/local/sbin/nearmetal-irqbalance"
COMPUTE_GENERATOR = "/etc/systemd/system-generators/nearmetal-compute"
PROGRAMS = (LAUNCHER, GENERATOR, COMPUTE_GENERATOR, IRQBALANCE_POLICY)
# For people and for EnvironmentFile=: the CPUs that interrupts leave alone.
COMPUTE_CPUS = "/etc/nearmetal/compute_cpus"
UNIT = (SERVICE, TIMER, RULES, LAUNCHER)
_OF_CONCERNS = {
    NETWORKD: "network_routes",
    GENERATOR: "numa",
    IRQBALANCE_POLICY: "network_irq",
    COMPUTE_GENERATOR: "network_irq",
    COMPUTE_CPUS: "network_irq",
}
_CONCERNS = re.compile(
    r"/etc/(?:(?:tmpfiles\.d/|sysctl\.d/99-)nearmetal-([a-z_]{1,32})\.conf"
    r"|udev/rules\.d/90-nearmetal-([a-z_]{1,32})\.rules)",
    re.ASCII,
)


def is_nearmetal_file(path: str) -> bool:
    """Whether a file of that path is one that nearmetal writes."""
    return path in (*UNIT, *PROGRAMS, COMPUTE_CPUS, NETWORKD) or _CONCERNS.fullmatch(path) is not None


def concern(path: str) -> Optional[str]:
    """The concern that writes a file of nearmetal; None for the files of the unit."""
    named = _CONCERNS.fullmatch(path)
    return (named[1] or named[2]) if named else _OF_CONCERNS.get(path)


def marked(text: str) -> bool:
    """Whether we wrote this text."""
    return any(line.startswith(MARK) for line in text.splitlines()[:2])


def observe(host: Host) -> Mapping[str, str]:
    """Path → text of each file of nearmetal that exists."""
    paths = [f"{folder}/{name}" for folder in FOLDERS for name in host.names(folder)]
    single = (*UNIT, *PROGRAMS, COMPUTE_CPUS, NETWORKD)
    texts = {path: host.text(path) for path in dict.fromkeys((*paths, *single)) if is_nearmetal_file(path)}
    return {path: text for path, text in texts.items() if text is not None}
