# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The timer of an experiment that outlives reboots: systemd starts it again at each boot. PRIVATE to the collection."""

from __future__ import annotations

from contextlib import suppress

from ..._error import NearmetalError
from ..._facts.switch import REBOOTS
from ..._host import store
from ..._host.agent_timer import AgentTimer
from ..._host.host import WritableHost
from ..._version import VERSION
from .timer import PURPOSE

TIMER = AgentTimer("nearmetal-prove", PURPOSE, f"{store.DATA}/prove.pyz", "abandoned", at_boot=True)


def is_present(host: WritableHost) -> bool:
    """Whether an experiment that outlives reboots, or the timer of one that is gone, is on this host."""
    return host.exists(REBOOTS) or host.exists(TIMER.agent)


def arm(host: WritableHost, python: str, seconds: int) -> None:
    """Arm the timer that each boot starts again. Raises NearmetalError when it can't be: nothing of it is left."""
    try:
        TIMER.arm(host, VERSION, python, seconds)
    except NearmetalError as error:
        store.remove_empty_data(host)
        raise NearmetalError(f"no timer could be armed, so nothing was changed: {error}") from None


def disarm(host: WritableHost) -> None:
    """Remove the timer of an experiment whose file, which decides, is gone."""
    with suppress(NearmetalError):
        TIMER.disarm(host)
    store.remove_empty_data(host)


def end(host: WritableHost) -> None:
    """End the experiment of a host that stays as it is now. The caller holds the lock."""
    store.remove_file(host, REBOOTS)
    store.remove_file(host, store.temporary_path(REBOOTS))
    disarm(host)
