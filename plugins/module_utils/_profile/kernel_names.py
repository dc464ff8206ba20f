# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of the kernel's functions, which kernel.kptr_restrict hides from root too, on lease. PRIVATE."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Iterator

from .._engine.lease import confirmation
from .._engine.lease.record import CHANGE, PATIENCE, Lease, arm, read
from .._engine.lease.taking_back import require_none, set_values
from .._error import NearmetalError
from .._facts.state_files import compares
from .._facts.sysctl import KERNEL_NAMES, path
from .._host import agent_timer, store
from .._host.host import WritableHost
from .._levers.registry import place_of
from .._plan import Action

_HIDDEN, _SHOWN = "2", "1"
_REASON = "perf reads the names of the kernel's functions while it records"


@contextmanager
def shown(host: WritableHost, seconds: float) -> Iterator[None]:
    """Within it root sees the names. At its end the lease ends and gives the setting back, after a kill its timer does.

    Raises NearmetalError where no timer can be armed, or another lease waits: then nothing is changed.
    """
    action = Action(
        "kernel_check", "kernel_names", "sysctl", _HIDDEN, _SHOWN, _REASON, "docs/profile.md", where=KERNEL_NAMES
    )
    place = place_of(host, action.key)
    if place.read() != _HIDDEN:
        yield
        return
    python = agent_timer.python_of(host)
    if not python:
        raise NearmetalError(f"{path(KERNEL_NAMES)} stays 2: no timer would give it back without systemd")
    with store.lock(host, PATIENCE):
        confirmation.require_none_waits(host)
        if compares(host):
            raise NearmetalError(f"{path(KERNEL_NAMES)} stays 2 while prove compares two states of this host")
        actions, devices = (action,), (place.identity(),)
        after = int(2 * seconds) + 600
        arm(host, Lease(CHANGE, "", host.boot_id(), after, python, actions=actions, devices=devices))
        failed = set_values(host, actions)
    try:
        require_none(failed)
        yield
    finally:
        lease = read(host, CHANGE)
        if lease is not None and lease.actions == actions:
            confirmation.take_back(host)
        elif place.read() == _SHOWN:  # a run of `tune` reached the host meanwhile, and confirmed all that waited
            with store.lock(host, PATIENCE):
                require_none(set_values(host, (action._replace(before=_SHOWN, after=_HIDDEN),)))
