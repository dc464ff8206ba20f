# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the unit does: look whether anything changed, and plan again. PRIVATE to the collection."""

from __future__ import annotations

import os
import time

from .._error import NearmetalError
from .._facts.fingerprint import fingerprint
from .._facts.state_files import EXPERIMENT, METRICS_VARIABLE, switched_off
from .._host import store
from .._host.host import WritableHost
from .output import print_line

# What changes while it plans (the rest of the queues of a new NIC) is planned in another round.
ROUNDS = 3
EVERY = 600  # seconds after which a look renews the file of metrics, which costs a plan


def reapply(host: WritableHost, if_changed: bool) -> int:
    """Plan again what the unit plans, as `_reapply`, and export metrics where an operator wants them."""
    planned_for = _planned_for(host)
    failed = _reapply(host, if_changed)
    directory = os.environ.get(METRICS_VARIABLE)
    if directory and switched_off(host) is None and (planned_for != _planned_for(host) or _is_due(host, directory)):
        from .metrics.export import export

        export(host)
    return failed


def _is_due(host: WritableHost, directory: str) -> bool:
    """Whether the file of metrics is absent or old."""
    try:
        return abs(time.time() - os.lstat(host.real(f"{directory}/{store.METRICS}")).st_mtime) > EVERY
    except OSError:
        return True


def _reapply(host: WritableHost, if_changed: bool) -> int:
    """Plan again what the unit plans; with `if_changed` only when the fingerprint is another than planned for.

    While it is the same, a concern that could not be planned or done is tried again,
    alone: the others stay as the operator has them. Returns 0 when none is left.
    """
    if host.exists(EXPERIMENT):
        from . import subcommands

        subcommands.expire(host, "prove", stopped=True)
    off = switched_off(host)
    if off is not None:
        print_line(f"switched off by {off}: nothing is planned")
        return 0
    planned_for, failed = _planned_for(host)
    now = fingerprint(host)
    if if_changed and now == planned_for and not failed:
        return 0
    # All the rest is imported for a plan alone: a look, every two minutes on every host, costs what it imports.
    from .._engine import ending
    from . import subcommands

    with ending.at_signals():
        for _round in range(ROUNDS):
            same = if_changed and now == planned_for
            still_failed = subcommands.replan(host, failed if same else ())
            if still_failed != failed or not same:
                text = "".join(f"{line}\n" for line in (now, *still_failed))
                store.replace_file(host, store.FINGERPRINT, text.encode(), mode=0o600, folder_mode=0o755)
            planned_for, failed, if_changed = now, still_failed, True
            now = fingerprint(host)
            if now == planned_for:
                break
    return int(bool(failed))


def _planned_for(host: WritableHost) -> tuple[str, tuple[str, ...]]:
    """The fingerprint that was planned for, empty when none was, and the concerns that could not be."""
    try:
        data = store.read_file(host, store.FINGERPRINT)
    except NearmetalError:
        data = None  # whatever it is, it isn't what we planned for
    lines = (data or b"").decode("ascii", "replace").split()
    return (lines[0], tuple(lines[1:])) if lines else ("", ())
