# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the timer of a lease does at its time, in sentences for the log. PRIVATE to the collection."""

from __future__ import annotations

from typing import List

from ..._host import store
from ..._host.agent_timer import RETRY
from ..._host.host import WritableHost
from .. import ending
from ..requests import restore_requests
from ..run import Conditions, run_step
from ..session import Origin
from . import confirmation
from .record import CHANGE, PATIENCE, REBOOTED, ROLLED, SWITCHED, TUNED, UNTUNED, Lease, present, read, release, write
from .taking_back import put_back, require_none

_TAKEN_BACK = "prove made no step for {seconds} s: the host is as it was before run {run}"
_REBOOTS = (
    "prove made no step for {seconds} s: what run {run} had tuned is taken back, and the host reboots, because it"
    " still runs with it"
)
_ROLLED = "rollout {run} didn't decide on this host within {seconds} s: what was tuned is taken back"
_STOPPED = "somebody stopped the timer of prove: the host is as it was before run {run}"


def expire(host: WritableHost, timer: str, stopped: bool = False) -> List[str]:
    """Take back what the timer of this name waited for, and remove a timer whose lease is gone; in sentences.

    With `stopped` only what prove switches, if somebody stopped its timer. Raises NearmetalError.
    """
    if timer == CHANGE.timer.name:
        return confirmation.take_back(host)
    if timer == ROLLED.timer.name:
        return _roll_back(host)
    kind, sentence = REBOOTED if REBOOTED.is_present(host) else SWITCHED, _TAKEN_BACK
    if stopped and (present(host, kind) is None or kind.timer.waits(host)):
        return []
    with ending.uninterrupted():
        with store.lock(host, PATIENCE):
            lease = present(host, kind)
            if stopped and (lease is None or not lease.abandon_after or kind.timer.waits(host)):
                return []
            if lease is None:
                release(host, kind)
                return []
            if kind is SWITCHED:
                put_back(host, lease)
                sentence = _STOPPED if stopped else _TAKEN_BACK
            elif take_back_everything(host, lease):
                sentence = _REBOOTS
        if sentence is _REBOOTS:
            kind.timer.wait(host, RETRY)  # from that boot on: nothing but the timer is left to remove
            host.command(("systemctl", "reboot"))
    return [sentence.format(seconds=lease.abandon_after, run=lease.run)]


def _roll_back(host: WritableHost) -> List[str]:
    with ending.uninterrupted(), store.lock(host, PATIENCE):
        lease = read(host, ROLLED)
        if lease is not None:
            restore_everything(host, f"rollout {lease.run}")
        release(host, ROLLED)
    return [_ROLLED.format(run=lease.run, seconds=lease.abandon_after)] if lease is not None else []


def take_back_everything(host: WritableHost, lease: Lease) -> bool:
    """Restore a host that prove reboots. Returns whether it must be rebooted; if not, the lease has ended.

    The caller holds the lock. Raises NearmetalError.
    """
    boot_id = host.boot_id()
    lease = note_boot(lease, boot_id)._replace(ending=True)
    write(host, lease)
    if restore_everything(host, f"prove {lease.run}") or lease.booted_tuned == boot_id:
        write(host, lease._replace(state=UNTUNED, written_in=boot_id, booted_tuned=boot_id))
        return True
    release(host, REBOOTED)
    return False


def note_boot(lease: Lease, boot_id: str) -> Lease:
    """The lease of a host that is rebooted, with a note when this boot began with the tuned files."""
    tuned = lease.state == TUNED and lease.written_in != boot_id
    return lease._replace(booted_tuned=boot_id) if tuned else lease


def restore_everything(host: WritableHost, origin: str) -> bool:
    """Take back everything that nearmetal did on this host. Returns whether that takes a reboot. Raises NearmetalError.

    The caller holds the lock and the lease. A concern that fails doesn't stop the others.
    """
    conditions = Conditions(Origin(origin))
    outcomes = run_step(host, lambda known: restore_requests(None, known), conditions).outcomes
    require_none({outcome.name: outcome.error for outcome in outcomes if outcome.error})
    return any(finding.status == "needs_reboot" for outcome in outcomes for finding in outcome.plan.findings)
