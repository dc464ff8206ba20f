# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the unit does: look whether anything changed, and plan anew. PRIVATE to the collection."""

from __future__ import annotations

from typing import Optional

from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.say import say
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine import store
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.fingerprint import fingerprint
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.unit import switched_off

# What changes while it plans (the rest of the queues of a new NIC) is planned in another round.
ROUNDS = 3


def reapply(host: WritableHost, if_changed: bool) -> int:
    """Plan anew what the unit plans; with `if_changed` only when the fingerprint is another than planned for.

    Returns 0 when every concern could be planned and done.
    """
    off = switched_off(host)
    if off is not None:
        say(f"switched off by {off}: nothing is planned")
        return 0
    seen = _planned_for(host)
    for _round in range(ROUNDS):
        now = fingerprint(host)
        if if_changed and now == seen:
            return 0
        from ansible_collections.nearmetal.ec2.plugins.module_utils._agent import tell

        if not tell.replan(host):
            return 1
        store.replace_file(host, store.FINGERPRINT, f"{now}\n".encode(), mode=0o600, folder_mode=0o755)
        seen, if_changed = now, True
    return 0


def _planned_for(host: WritableHost) -> Optional[str]:
    try:
        data = store.read_file(host, store.FINGERPRINT)
    except NearmetalError:
        return None  # whatever it is, it isn't what we planned for
    return data.decode("ascii", "replace").strip() if data is not None else None
