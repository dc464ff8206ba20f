# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Timers of systemd that start a copy of the agent. PRIVATE to the collection.

Whoever arms a timer brings the host's agent to a place of the timer's own: the installed one may be exchanged.
"""

from __future__ import annotations

from collections.abc import Sequence

from .._error import NearmetalError, Unanswered
from .._facts import systemd
from . import bundle, store
from .host import WritableHost

RETRY = 15  # seconds between two attempts
# Seconds for an answer about a timer: systemctl itself waits 180 s for systemd, but for a job that systemd has without
# end, and meanwhile a run holds the host's lock.
ANSWERS_WITHIN = 200.0


def bring_agent(host: WritableHost, version: str, path: str, folder_mode: int = 0o755) -> None:
    """Write the agent that the timer starts."""
    store.replace_file(host, path, bundle.agent_of(host.real("/"), version), mode=0o600, folder_mode=folder_mode)


def start(host: WritableHost, name: str, seconds: int, command: Sequence[str], properties: Sequence[str] = ()) -> None:
    """Run the command in so many seconds, and then again and again; a reboot ends that.

    `properties` are options of systemd-run; an old systemd gets those that it knows. Raises NearmetalError when systemd
    doesn't have the timer afterwards, whatever systemd-run says, and at the first question that it doesn't answer in
    time.
    """
    timer = f"{name}.timer"
    stop(host, timer)  # left by a run that was killed
    when = (f"--on-active={seconds}", f"--on-unit-inactive={RETRY}", "--timer-property=AccuracySec=1")
    options = systemd.words_for(systemd.version(host), ("--quiet", f"--unit={name}", *when, *properties))
    host.command(("systemd-run", *options, *command), ANSWERS_WITHIN)
    if _state(host, timer) in ("inactive", "failed"):
        raise NearmetalError(f"systemd-run reported success, but systemd has no {timer}: look at `systemctl status`")


def waits(host: WritableHost, timer: str) -> bool:
    """Whether systemd has the timer; True also when systemd doesn't answer."""
    try:
        return _state(host, timer) not in ("inactive", "failed")
    except NearmetalError:
        return True


def stop(host: WritableHost, timer: str) -> None:
    """Stop a timer. Raises NearmetalError when it runs on, or when systemd can't say; one that is gone is stopped."""
    # A transient service that failed stays, and systemd-run can't use its name; --collect needs systemd 236.
    service = timer.replace(".timer", ".service")
    for word, unit, left in (("stop", timer, "active"), ("reset-failed", service, "failed")):
        try:
            ask(host, word, unit)
        except Unanswered:
            raise
        except NearmetalError:
            if _state(host, unit) == left:
                raise


def ask(host: WritableHost, *words: str) -> str:
    """What systemctl answers about a timer. Raises Unanswered when it doesn't in time, else NearmetalError."""
    return host.command(("systemctl", *words), ANSWERS_WITHIN)


def _state(host: WritableHost, timer: str) -> str:
    return ask(host, "show", "--property=ActiveState", timer).strip().rpartition("=")[2]
