# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The timer of an experiment that outlives reboots: systemd starts it again at each boot. PRIVATE to the collection."""

from __future__ import annotations

from contextlib import suppress

from ..._error import NearmetalError
from ..._facts.switch import REBOOTS
from ..._host import agent_timer, store
from ..._host.host import WritableHost
from ..._levers.unit import link
from ..._version import VERSION
from .timer import NAME, TIMER

AGENT = f"{store.DATA}/prove.pyz"
_UNITS = "/etc/systemd/system"
_SERVICE_FILE, _TIMER_FILE = f"{_UNITS}/{NAME}.service", f"{_UNITS}/{TIMER}"
_LINK = f"{_UNITS}/timers.target.wants/{TIMER}"  # with it systemd starts the timer at boot
_SERVICE_TEXT = """[Unit]
Description=Take back what nearmetal.ec2.prove compares, because no step of it came for a while

[Service]
Type=oneshot
ExecStart={python} -I {agent} abandoned
"""
_TIMER_TEXT = """[Unit]
Description=Wait for the next step of nearmetal.ec2.prove

[Timer]
OnActiveSec={seconds}
OnUnitInactiveSec={retry}
AccuracySec=1
"""


def is_present(host: WritableHost) -> bool:
    """Whether an experiment that outlives reboots, or the timer of one that is gone, is on this host."""
    return host.exists(REBOOTS) or host.exists(AGENT)


def arm(host: WritableHost, python: str, seconds: int) -> None:
    """Arm the timer that each boot starts again. Raises NearmetalError when it can't be: nothing of it is left."""
    try:
        agent_timer.bring_agent(host, VERSION, AGENT, folder_mode=0o700)
        store.replace_file(
            host,
            _SERVICE_FILE,
            _SERVICE_TEXT.format(python=python, agent=AGENT).encode(),
            mode=0o644,
            folder_mode=0o755,
        )
        link(host, _LINK)
        wait(host, seconds)
    except NearmetalError as error:
        with suppress(NearmetalError):
            disarm(host)
        raise NearmetalError(f"no timer could be armed, so nothing was changed: {error}") from None


def wait(host: WritableHost, seconds: int) -> None:
    """Let the lasting timer wait so long from now on, and from each boot on."""
    text = _TIMER_TEXT.format(seconds=seconds, retry=agent_timer.RETRY)
    store.replace_file(host, _TIMER_FILE, text.encode(), mode=0o644, folder_mode=0o755)
    host.command(("systemctl", "daemon-reload"))
    restart(host)


def restart(host: WritableHost) -> None:
    """Let the lasting timer start to count again. Raises NearmetalError when it doesn't run afterwards."""
    agent_timer.ask(host, "restart", TIMER)
    if not agent_timer.waits(host, TIMER):
        raise NearmetalError(f"systemd has no {TIMER} after `systemctl restart {TIMER}`: look at `systemctl status`")


def disarm(host: WritableHost) -> None:
    """Remove the lasting timer after the experiment's file, which decides, and before the agent, which shows it."""
    with suppress(NearmetalError):
        agent_timer.stop(host, TIMER)
    for path in (_LINK, _TIMER_FILE, _SERVICE_FILE, AGENT):
        store.remove_file(host, path)
        store.remove_file(host, store.temporary_path(path))
    with suppress(NearmetalError):
        agent_timer.ask(host, "daemon-reload")
    store.remove_empty_data(host)


def end(host: WritableHost) -> None:
    """End the experiment of a host that stays as it is now. The caller holds the lock."""
    store.remove_file(host, REBOOTS)
    store.remove_file(host, store.temporary_path(REBOOTS))
    disarm(host)
