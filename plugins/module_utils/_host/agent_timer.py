# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Timers of systemd that start a copy of the agent. PRIVATE to the collection.

Whoever arms a timer brings the host's agent to a place of the timer's own: the installed one may be exchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._host import bundle, store
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost

RETRY = 15  # seconds between two attempts


def bring_agent(host: WritableHost, version: str, path: str, folder_mode: int = 0o755) -> None:
    """Write the agent that the timer starts."""
    store.replace_file(host, path, bundle.agent_of(host.real("/"), version), mode=0o600, folder_mode=folder_mode)


def start(
    host: WritableHost, name: str, seconds: int, command: Sequence[str], properties: Sequence[Sequence[str]] = ((),)
) -> None:
    """Run the command in so many seconds, and then again and again; a reboot ends that.

    An old systemd may refuse the `properties`, so each set is tried in turn. Raises NearmetalError when systemd doesn't
    have the timer afterwards, whatever systemd-run says.
    """
    timer = f"{name}.timer"
    with suppress(NearmetalError):  # left by a run that was killed
        host.command(("systemctl", "stop", timer))
    when = (f"--on-active={seconds}", f"--timer-property=OnUnitInactiveSec={RETRY}")
    run = ("systemd-run", "--quiet", "--collect", f"--unit={name}", *when, "--timer-property=AccuracySec=1")
    for last, more in zip([*[False] * (len(properties) - 1), True], properties):
        try:
            host.command((*run, *more, *command))
            break
        except NearmetalError:
            if last:
                raise
    if not waits(host, timer):
        raise NearmetalError(f"systemd-run reported success, but systemd has no {timer}: look at `systemctl status`")


def waits(host: WritableHost, timer: str) -> bool:
    """Whether systemd has the timer; True also when systemd doesn't answer."""
    try:
        state = host.command(("systemctl", "show", "--property=ActiveState", timer)).strip()
    except NearmetalError:
        return True
    return state not in ("ActiveState=inactive", "ActiveState=failed")
