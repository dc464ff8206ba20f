# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The timer that takes an experiment back when no step came for a while. PRIVATE to the collection."""

from __future__ import annotations

from contextlib import suppress

from ..._error import NearmetalError
from ..._facts.switch import EXPERIMENT
from ..._host import store
from ..._host.agent_timer import AgentTimer
from ..._host.host import WritableHost
from ..._version import VERSION
from .running import Experiment, write

PURPOSE = "Take back what nearmetal.ec2.prove compares, because no step of it came for a while"
TIMER = AgentTimer("nearmetal-prove", PURPOSE, "/run/nearmetal/prove.pyz", "abandoned")


def arm(host: WritableHost, experiment: Experiment) -> None:
    """Arm the timer, then write the experiment: one that nobody takes back must not begin."""
    if experiment.abandon_after:
        try:
            TIMER.arm(host, VERSION, experiment.python, experiment.abandon_after)
        except NearmetalError as error:
            raise NearmetalError(f"no timer could be armed, so nothing was changed: {error}") from None
    write(host, experiment)


def restart(host: WritableHost, experiment: Experiment) -> None:
    """Let the timer start to count again."""
    if experiment.abandon_after:
        TIMER.restart(host)


def disarm(host: WritableHost) -> None:
    """Remove the experiment's file first, because it decides."""
    armed = host.exists(TIMER.agent)
    store.remove_file(host, EXPERIMENT)
    store.remove_file(host, store.temporary_path(EXPERIMENT))  # left by a step that was killed
    if armed:
        with suppress(NearmetalError):
            TIMER.disarm(host)
