# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that `prove` reboots: it boots from its disk, loses what ran, and its systemd knows the timers in /etc."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Callable, Dict, Optional

from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError

from tests.support.boot_trees import BootHost, debian
from tests.support.kernel import systemd


class RebootingHost(BootHost):
    """Its `boots` are the command lines of the kernels that ran, the present one last."""

    boots: "list[str]"
    meanwhile: "dict[str, Callable[[], object]]"  # what somebody else does while a command runs

    def command(self, argv: "list[str] | tuple[str, ...]", timeout: float = 60) -> str:
        if argv[0] != "systemctl":
            return super().command(argv, timeout)
        line = " ".join(argv)
        self.commands.append(line)
        if line in self.moods:
            raise NearmetalError(f"{line} failed with code 1: {self.moods[line]}")
        systemd.require_known(systemd.version(Path(self.root)), argv)
        self.meanwhile.get(line, str)()
        if line == "systemctl reboot":
            self.boot_again()
        return ""

    def boot_again(self, hardware: Optional[Dict[str, str]] = None) -> None:
        """What a reboot leaves: the files on disk, and a kernel with their arguments."""
        self.reboot(f"{len(self.boots):08}-2222-3333-4444-555555555555", hardware)
        self.boots.append(self.line("/proc/cmdline") or "")

    @property
    def tuned(self) -> bool:
        """Whether the running kernel has the argument of TUNING."""
        return "tsc=reliable" in self.boots[-1].split()

    @property
    def waits(self) -> bool:
        """Whether the next boot would start the timer."""
        units = f"{self.root}/etc/systemd/system"
        linked = os.path.lexists(f"{units}/timers.target.wants/nearmetal-prove.timer")
        return linked and os.path.exists(f"{units}/nearmetal-prove.timer")


TUNING = {"concerns": {"clocksource": {"tsc_reliable": "enabled"}, "network_stack": {"somaxconn": 8192}}}


def rebooting(root: Path) -> RebootingHost:
    """A Debian host on metal, which has booted from its disk once."""
    host = debian(root)
    host.__class__ = RebootingHost
    assert isinstance(host, RebootingHost)
    somaxconn = {"/proc/sys/net/core/somaxconn": "4096\n"}
    host.boots, host.meanwhile = [], {}
    host.boot_again({**host.hardware, **somaxconn})
    return host
