# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A timer of systemd that starts a copy of the agent, again and again until the agent removes it. PRIVATE.

Its units are files: in /run they end with the boot, in /etc systemd starts the timer at each boot. The agent is a copy
of the timer's own, because the installed one may be exchanged.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from .._error import NearmetalError, Unanswered
from .._facts.facts import observe
from . import bundle, store
from .host import WritableHost

RETRY = 15  # seconds between two attempts
# Seconds for an answer about a timer: systemctl itself waits 180 s for systemd, but for a job that systemd has without
# end, and meanwhile a run holds the host's lock.
ANSWERS_WITHIN = 200.0
_SERVICE = """[Unit]
Description={purpose}

[Service]
Type=oneshot
ExecStart={python} -I {agent} expire {name}
"""
# A soft reboot, which keeps the kernel and its values, ends all units but those that nothing stops for it
# (systemd-soft-reboot.service(8)).
_TIMER = """[Unit]
Description=Wait to do this: {purpose}
DefaultDependencies=no
IgnoreOnIsolate=yes

[Timer]
OnActiveSec={seconds}
OnUnitInactiveSec={retry}
AccuracySec=1
"""


def python_of(host: WritableHost) -> str:
    """The Python that a timer starts; empty on a host that can't have one."""
    unit = observe(host, ("unit",)).unit
    return (unit.python or "") if unit is not None and host.booted() else ""


class AgentTimer(NamedTuple):
    """One timer, by its name, with its copy of the agent in a folder of nearmetal."""

    name: str
    purpose: str
    folder: str = store.RUN  # in store.DATA its timer starts at each boot

    @property
    def agent(self) -> str:
        """The path of its agent, by which one knows a timer that is left."""
        return f"{self.folder}/{self.name}.pyz"

    @property
    def unit(self) -> str:
        """The unit that counts down."""
        return f"nearmetal-{self.name}.timer"

    @property
    def _service(self) -> str:
        return f"nearmetal-{self.name}.service"

    def _path(self, unit: str) -> str:
        return f"{'/etc' if self.folder == store.DATA else '/run'}/systemd/system/{unit}"

    def arm(self, host: WritableHost, version: str, python: str, seconds: int) -> None:
        """Start it. Raises NearmetalError, with nothing of it left, at the first question that systemd doesn't answer.

        It counts as started only if systemd has it afterwards, whatever systemctl says.
        """
        service = _SERVICE.format(**self._asdict(), agent=self.agent, python=python)
        at_boot = self.folder == store.DATA
        agent = bundle.agent_of(host.real("/"), version)
        try:
            store.replace_file(host, self.agent, agent, mode=0o600, folder_mode=0o700 if at_boot else 0o755)
            store.replace_file(host, self._path(self._service), service.encode(), mode=0o644, folder_mode=0o755)
            if at_boot:
                store.link_unit(host, self._path(f"timers.target.wants/{self.unit}"))
            self.wait(host, seconds)
        except NearmetalError:
            with suppress(NearmetalError):
                self._remove_files(host)
                self.disarm(host)
            raise

    def wait(self, host: WritableHost, seconds: int) -> None:
        """Let it run out in so many seconds from now on, and from each boot on."""
        text = _TIMER.format(**self._asdict(), seconds=seconds, retry=RETRY)
        store.replace_file(host, self._path(self.unit), text.encode(), mode=0o644, folder_mode=0o755)
        ask(host, "daemon-reload")
        self.restart(host)

    def restart(self, host: WritableHost) -> None:
        """Let it start to count again. Raises NearmetalError when it doesn't run afterwards.

        systemd stops and starts it in one job, which is completed even when this process is killed meanwhile.
        """
        ask(host, "restart", self.unit)
        if _state(host, self.unit) in ("inactive", "failed"):
            raise NearmetalError(f"systemd has no {self.unit} after its restart: look at `systemctl status`")

    def waits(self, host: WritableHost) -> bool:
        """Whether systemd has it; True also when systemd doesn't answer."""
        try:
            return _state(host, self.unit) not in ("inactive", "failed")
        except NearmetalError:
            return True

    def disarm(self, host: WritableHost) -> None:
        """Stop and remove it. Raises NearmetalError when it runs on, or when systemd can't say: all of it stays then.

        It may start the agent once more, which finds nothing to do and disarms it.
        """
        stop(host, self.unit)
        self._remove_files(host)
        ask(host, "daemon-reload")

    def _remove_files(self, host: WritableHost) -> None:
        units = (f"timers.target.wants/{self.unit}", self.unit, self._service)
        for path in (*map(self._path, units), self.agent):
            store.remove_file(host, path)
            store.remove_file(host, store.temporary_path(path))


def stop(host: WritableHost, timer: str) -> None:
    """Stop a timer. Raises NearmetalError when it runs on, or when systemd can't say; one that is gone is stopped."""
    service = timer.replace(".timer", ".service")  # one that failed stays known to systemd
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


def _state(host: WritableHost, unit: str) -> str:
    return ask(host, "show", "--property=ActiveState", unit).strip().rpartition("=")[2]
