# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The levers for the unit: the agent's file, and whether systemd starts it. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Iterable, List

from .._error import Damaged, NearmetalError
from .._facts.unit import AGENT, IDENTITY, LINK, OLDER_LINK, enabled, identity
from .._host import agent_timer, bundle, installed, store
from .._host.host import WritableHost
from .._plan import Value
from .base import Lever, NearmetalValues
from .files import read_only

# An audit sends the agent to each host that has none: a larger one is a reason to look for what it needn't carry.
MAX_BYTES = 640 * 1024
_MARK = rf"# nearmetal\.ec2 agent ({IDENTITY.pattern})\n"  # as `bundle.mark` writes it
_CACHE = r"nearmetal\.[a-z0-9-]{1,32}\.zip"


class Agent(Lever):
    """The zip application; its value is its version and the digest of its sources."""

    scope = "boot"

    def remembered(self, value: Value) -> Value:
        # Any version of the agent is nearmetal's, and is removed with the last concern that needs it.
        return None if value is None else "agent"

    def fits(self, where: str, value: Value) -> bool:
        return value is None or (isinstance(value, str) and IDENTITY.fullmatch(value) is not None)

    def read(self) -> Value:
        """Its identity; of an agent that somebody removed, that of the cache which is left."""
        foreign = _foreign(self.host)
        if foreign:
            raise Damaged(foreign)
        heads = (self.host.text(path, limit=256) or "" for path in _caches(self.host))
        marks = (match[1] for match in (re.match(_MARK, head, re.ASCII) for head in heads) if match is not None)
        return identity(self.host) or next(marks, None)

    def write(self, value: Value) -> None:
        foreign = _foreign(self.host)
        if foreign:
            raise NearmetalError(foreign)
        for path in _caches(self.host):
            store.remove_file(self.host, path)
        if value is None:
            store.remove_file(self.host, AGENT)
            return
        version = str(value).split(" ", maxsplit=1)[0]
        data = bundle.build(version)
        if bundle.identity(version) != value:
            raise NearmetalError(f"this nearmetal can't build the agent {value}")
        if len(data) > MAX_BYTES:
            raise NearmetalError(f"the agent has {len(data)} bytes, more than the {MAX_BYTES} that it may have")
        store.replace_file(self.host, AGENT, data, mode=0o644, folder_mode=0o755)
        cache = f"{installed.FOLDER}/{installed.cache_name()}"
        store.replace_file(self.host, cache, bundle.compiled(version), mode=0o644, folder_mode=0o755)

    def obstacle(self) -> str:
        return _foreign(self.host) or read_only(self.host, AGENT)

    def temporary(self) -> Iterable[str]:
        return (store.temporary_path(AGENT), store.temporary_path(f"{installed.FOLDER}/{installed.cache_name()}"))

    def folder(self) -> str:
        return installed.FOLDER


def _foreign(host: WritableHost) -> str:
    """That something else has the agent's name, and what to do; empty when nothing has."""
    if not host.exists(AGENT) or identity(host) is not None:
        return ""
    return f"{AGENT} exists and nearmetal didn't write it: move it away and run again"


def _caches(host: WritableHost) -> List[str]:
    """What versions of Python have compiled of the agent."""
    names = host.names(installed.FOLDER)
    return [f"{installed.FOLDER}/{name}" for name in names if re.fullmatch(_CACHE, name, re.ASCII)]


class Enabled(NearmetalValues, Lever):
    """Whether systemd starts the timer at boot, by the link that `systemctl enable` makes; False: as it once was."""

    scope = "boot"

    def remembered(self, value: Value) -> Value:
        return None if value is None else True  # an older version's link is nearmetal's, too

    def fits(self, where: str, value: Value) -> bool:
        return value is None or isinstance(value, bool)

    def read(self) -> Value:
        return enabled(self.host)

    def write(self, value: Value) -> None:
        if value is None:
            if self.host.booted():
                agent_timer.stop(self.host, "nearmetal.timer")
            store.remove_file(self.host, LINK)
            store.remove_file(self.host, OLDER_LINK)
            store.remove_file(self.host, store.FINGERPRINT)
            return
        store.link_unit(self.host, LINK)
        store.remove_file(self.host, OLDER_LINK)
        if self.host.booted():
            agent_timer.ask(self.host, "start", "nearmetal.timer")

    def obstacle(self) -> str:
        return read_only(self.host, LINK)


LEVERS = (
    Enabled("unit.enabled"),
    Agent("unit.agent"),
)
