# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host belongs to one rollout at a time, by a lease that takes its tuning back if nobody decides. PRIVATE."""

from __future__ import annotations

from typing import Any, Dict, Mapping

from .._engine.lease import record
from .._engine.lease.record import PATIENCE, ROLLED, Lease
from .._host import store
from .._host.agent_timer import python_of
from .._host.host import WritableHost
from .._words import printable


def claim(host: WritableHost, options: Mapping[str, Any]) -> Dict[str, Any]:
    """Take the host for this run, or let its time begin anew; `claimed` is false if another run has it."""
    with store.lock(host, PATIENCE):
        lease = record.read(host, ROLLED)
        if lease is not None and lease.run != options["run"]:
            said = f"another rollout has this host, {printable(lease.run)}; {ROLLED.path} says so"
            return {"changed": False, "claimed": False, "msg": said}
        python = python_of(host) if options["lease"] else ""
        seconds = int(options["lease"]) if python else 0
        record.arm(host, Lease(ROLLED, run=options["run"], abandon_after=seconds, python=python))
    return {"changed": False, "claimed": True, "lease": seconds, "msg": "claimed"}


def release(host: WritableHost, options: Mapping[str, Any]) -> Dict[str, Any]:
    """End the lease of this run: the host stays as it is. `released` is false if it had no such lease any more."""
    with store.lock(host, PATIENCE):
        lease = record.read(host, ROLLED)
        if lease is None or lease.run != options["run"]:
            return {"changed": False, "released": False, "msg": "its lease had ended before"}
        record.release(host, ROLLED)
    return {"changed": False, "released": True, "msg": "released"}
