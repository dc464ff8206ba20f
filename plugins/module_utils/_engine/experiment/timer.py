# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The timer that takes an experiment back when no step came for a while. PRIVATE to the collection."""

from __future__ import annotations

from contextlib import suppress

from ..._error import NearmetalError, Unanswered
from ..._facts.switch import EXPERIMENT
from ..._host import agent_timer, store
from ..._host.host import WritableHost
from ..._version import VERSION
from .running import Experiment, write

NAME = "nearmetal-prove"
AGENT = "/run/nearmetal/prove.pyz"
TIMER = f"{NAME}.timer"
# A soft reboot, which keeps the kernel and /run, ends all units but those that nothing stops for it
# (systemd-soft-reboot.service(8)). A systemd that takes neither property knows no soft reboot.
_LASTING = ("--timer-property=DefaultDependencies=no", "--timer-property=IgnoreOnIsolate=yes")


def arm(host: WritableHost, experiment: Experiment) -> None:
    """Arm the timer, then write the experiment: one that nobody takes back must not begin."""
    if experiment.abandon_after:
        agent_timer.bring_agent(host, VERSION, AGENT)
        try:
            _start(host, experiment)
        except NearmetalError as error:
            with suppress(NearmetalError):
                disarm(host)
            raise NearmetalError(f"no timer could be armed, so nothing was changed: {error}") from None
    write(host, experiment)


def restart(host: WritableHost, experiment: Experiment) -> None:
    """Let the timer start to count again.

    systemd stops and starts it in one job, which is completed even when this process is killed meanwhile.
    """
    if not experiment.abandon_after:
        return
    try:
        agent_timer.ask(host, "restart", TIMER)
    except Unanswered:
        raise
    except NearmetalError:  # somebody stopped it
        _start(host, experiment)


def waits(host: WritableHost) -> bool:
    """Whether systemd has the timer; True also when systemd doesn't answer."""
    return agent_timer.waits(host, TIMER)


def _start(host: WritableHost, experiment: Experiment) -> None:
    command = (experiment.python, "-I", AGENT, "abandoned")
    agent_timer.start(host, NAME, experiment.abandon_after, command, _LASTING)


def disarm(host: WritableHost) -> None:
    """Remove the experiment's file first, because it decides, and the agent when nothing starts it any more."""
    armed = host.exists(AGENT)
    store.remove_file(host, EXPERIMENT)
    for path in (EXPERIMENT, AGENT):
        store.remove_file(host, store.temporary_path(path))  # left by a step that was killed
    if not armed:
        return
    with suppress(NearmetalError):
        agent_timer.stop(host, TIMER)
    store.remove_file(host, AGENT)
