# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The dead-man timer: a network change that cuts the host off takes itself back. PRIVATE to the collection.

It is armed before the change. Whoever reaches the host over a new connection
confirms; if nobody does, systemd starts a copy of the agent that lies in /run,
which puts back what was there. A reboot ends the timer and brings the old values;
that nobody had confirmed outlives it, so that the unit doesn't set them again.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any, List, Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._agent import bundle
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine import store
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.apply import roll_back
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.journal import Journal
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.levers import lever
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.stored import StoredWanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import observe
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import json_text
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Action
from ansible_collections.nearmetal.ec2.plugins.module_utils._version import VERSION

NAME = "nearmetal-dead-man"
ARMED = f"{store.DATA}/dead-man.json"
AGENT = "/run/nearmetal/dead-man.pyz"
PATIENCE = 60  # seconds to wait for the run that is being taken back


def cuts_off(actions: Sequence[Action]) -> List[Action]:
    """The actions after which a host may not be reachable any more."""
    return [action for action in actions if action.disruptive and action.what.startswith("network.")]


def arm(host: WritableHost, actions: Sequence[Action], seconds: int) -> None:
    """Take these actions back in so many seconds, unless somebody confirms.

    Raises NearmetalError when that can't be arranged: then the actions must not be done.
    """
    if waits(host):
        raise NearmetalError(
            "an earlier network change still waits to be confirmed: run `nearmetal confirm` on the host over a new"
            " connection, or wait until it has taken itself back, and run again"
        )
    unit = observe(host, ("unit",)).unit
    if unit is None or unit.python is None or not host.booted():
        raise NearmetalError(
            "no dead-man timer can be armed without systemd and a Python 3.8 at boot: confirm_within: 0"
        )
    armed = {"boot_id": host.boot_id(), "actions": [asdict(action) for action in actions]}
    store.replace_file(host, ARMED, json.dumps(armed).encode(), mode=0o600, folder_mode=0o700)
    store.replace_file(host, AGENT, bundle.build(VERSION), mode=0o600, folder_mode=0o755)
    timer = ("systemd-run", "--quiet", "--collect", f"--unit={NAME}", f"--on-active={seconds}")
    host.command((*timer, "--timer-property=AccuracySec=1", unit.python, "-I", AGENT, "dead-man"))


def waits(host: WritableHost) -> bool:
    """Whether a change of this boot waits to be confirmed."""
    boot_id, actions = _armed(host)
    return bool(actions) and boot_id == host.boot_id()


def confirm(host: WritableHost) -> bool:
    """The host is reachable: disarm. Whether anything was armed."""
    with store.lock(host, PATIENCE):
        if not waits(host):
            return False
        disarm(host)
        return True


def disarm(host: WritableHost) -> None:
    """Stop the timer; the caller holds the lock."""
    host.command(("systemctl", "stop", f"{NAME}.timer"))
    _forget(host)


def unconfirmed(host: WritableHost) -> List[str]:
    """The concerns with a change that nobody had confirmed when the host was rebooted."""
    boot_id, actions = _armed(host)
    return sorted({action.concern for action in actions}) if boot_id != host.boot_id() else []


def expire(host: WritableHost, stored: StoredWanted) -> None:
    """Want those concerns no longer; the caller holds the lock."""
    concerns = unconfirmed(host)
    for concern in concerns:
        stored.put(concern, None, "", VERSION)
    if concerns:
        _forget(host)


def fire(host: WritableHost) -> List[Action]:
    """Put back what was there before, and want it no longer; what was put back.

    Raises NearmetalError when something couldn't be put back.
    """
    with store.lock(host, PATIENCE):
        _boot_id, actions = _armed(host)
        moved = [action for action in actions if lever(action.what).read(host, action.where) != action.before]
        if not moved:
            _forget(host)
            return []
        platform = observe(host, ("platform",)).platform
        journal, stored = Journal(host, platform.instance_id if platform else None), StoredWanted(host)
        # First, so that the unit doesn't set it again in between.
        for concern in {action.concern for action in moved}:
            stored.put(concern, None, "", VERSION)
        trouble = roll_back(host, moved)
        if trouble:
            raise NearmetalError(f"the dead-man timer could not put everything back: {trouble}")
        journal.settle([replace(action, after=action.before) for action in moved])
        _forget(host)
        return moved


def _armed(host: WritableHost) -> Tuple[str, List[Action]]:
    """The boot in which something was armed, and what, checked as if it came from a stranger; empty for nothing."""
    data = store.read_file(host, ARMED)
    if data is None:
        return "", []
    try:
        armed = json_text.parse(data.decode("utf-8"))
        boot_id, actions = str(armed["boot_id"]), [_action(raw) for raw in armed["actions"]]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NearmetalError(f"{ARMED} isn't what nearmetal armed ({str(error).splitlines()[0]})") from None
    return boot_id, actions


def _action(raw: Any) -> Action:
    action = Action(**raw)
    lever(action.what).check(action.where, action.before)
    return action


def _forget(host: WritableHost) -> None:
    for path in (AGENT, ARMED):
        store.remove_file(host, path)
    store.remove_empty_data(host)
