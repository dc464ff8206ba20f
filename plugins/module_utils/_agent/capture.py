# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""`nearmetal capture`: one JSON file from which this host can be planned elsewhere. PRIVATE to the collection.

The facts are observed once through a host that reads only allowed paths and notes what it
read. So a capture holds what this version's facts need, and nothing that isn't listed.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any, Dict, List, Mapping, Optional, Set

from .._concerns.registry import CONCERNS
from .._error import NearmetalError
from .._facts.facts import DOMAINS, observe
from .._facts.host import Host
from .._facts.packages import DEBIAN
from .._host.host import WritableHost
from .._memory.stored import StoredWanted
from .._parse import versions
from .._planning.options import COMMON
from .._programs.registry import program_of
from .._requests.asking import running_programs
from .._version import VERSION
from .allowed import LONGEST_FILE, is_of_process, link_of, rule_of

FORMAT = 1

# Records that ask a driver for its name, channels, rings, moderation, offloads and counters (linux/ethtool.h).
_RECORDS = (0x03, 0x3C, 0x10, 0x0E, 0x3A, 0x1B, 0x1D, 0x37)

# Options that name somebody's group, unit or folder; what a plan would ask of these isn't captured either.
_NAMES = frozenset(("compute_units", "group", "mount", "services"))


class AllowedHost(Host):
    """A host of which only what is allowed can be read, and that remembers what was."""

    def __init__(self, real: Host) -> None:
        super().__init__(real.root or "/")
        self._real = real
        self.files: Dict[str, str] = {}
        self.links: Dict[str, str] = {}
        self.folders: Set[str] = set()
        self.read_only: Set[str] = set()
        self.drivers: Dict[str, Dict[str, str]] = {}

    def real(self, path: str) -> str:
        return self._real.real(path)

    def names(self, path: str) -> List[str]:
        if rule_of(path) is None:
            return []
        allowed = [name for name in self._real.names(path) if rule_of(f"{path}/{name}") is not None]
        if is_of_process(path):
            return allowed
        if allowed:
            self.folders.add(self._place(path))
        for name in allowed:
            self.exists(f"{path}/{name}")
        return allowed

    def link(self, path: str) -> Optional[str]:
        target = self._real.link(path) if rule_of(path) is not None else None
        target = link_of(path, target) if target is not None else None
        if target is not None:
            parent, name = os.path.split(path)
            self.links[f"{self._place(parent)}/{name}"] = target
        return target

    def exists(self, path: str) -> bool:
        if rule_of(path) is None or not self._real.exists(path):
            return False
        if self.link(path) is None:
            place = self._place(path)
            if os.path.isdir(self._real.real(path)):
                self.folders.add(place)
            else:
                self.files.setdefault(place, "")
        return True

    def fixed(self, path: str) -> bool:
        is_fixed = rule_of(path) is not None and self._real.fixed(path)
        if is_fixed:
            self.read_only.add(self._place(path))
        return is_fixed

    def machine(self) -> Optional[str]:
        return self._real.machine()

    def _driver(self, device: str, record: bytes) -> bytes:
        answer = self._real.ethtool(device, record)
        if answer is None or int.from_bytes(record[:4], sys.byteorder) not in _RECORDS:
            raise OSError(95, "not in the capture", device)
        self.drivers.setdefault(device, {})[record_key(record)] = answer.hex()
        return answer

    def _read(self, path: str, limit: int, records: bool) -> Optional[str]:
        keep = rule_of(path)
        if keep is None:
            return None
        text = self._real.records(path) if records else self._real.text(path, min(limit, LONGEST_FILE))
        if text is None:
            return None
        kept = keep(text)
        if kept or not is_of_process(path):
            self.files[self._place(path)] = kept
        return kept

    def _place(self, path: str) -> str:
        """The path without symbolic links; those on the way are noted."""
        return self._resolved(path) or ""

    def _target(self, place: str) -> Optional[str]:
        target = self._real.link(place)
        if target is not None:
            self.links[place] = target
        return target


def record_key(record: bytes) -> str:
    """The key of an ethtool request: its beginning and its length, because the rest is room for the answer."""
    return f"{record[:16].hex()}/{len(record)}"


def capture(host: WritableHost) -> Dict[str, Any]:
    """The capture as plain JSON data. Reads, never writes."""
    allowed = AllowedHost(host)
    observe(allowed, DOMAINS)
    running, _processes = running_programs(host)
    packages = {name: program_of(name).packages[:1] for name in running}
    installed = {package: running[name] for name in running for package in packages[name] if running[name]}
    if installed:  # as a host of Debian has it, from wherever it is known here
        allowed.files[DEBIAN] = versions.render(installed)
    return {
        "format": FORMAT,
        "nearmetal": VERSION,
        "captured": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": host.machine(),
        "files": dict(sorted(allowed.files.items())),
        "links": dict(sorted(allowed.links.items())),
        "folders": sorted(allowed.folders),
        "read_only": sorted(allowed.read_only),
        "drivers": allowed.drivers,
        "wanted": _wanted(host),
    }


def _wanted(host: WritableHost) -> Dict[str, Any]:
    """What is stored as wanted, as far as it is still valid: words and numbers of the concerns' own options."""
    wanted = {}
    stored = StoredWanted(host)
    for name in CONCERNS:
        kept = stored.get(name)
        if kept is None:
            continue
        concern = CONCERNS[name]
        try:
            options = kept.wanted(concern).options
        except NearmetalError:
            continue
        # A waiver's reason was written by somebody, and isn't captured.
        known = {**COMMON, **concern.options}
        wanted[name] = _nameless({option: value for option, value in options.items() if option in known})
    return wanted


def _nameless(value: Any) -> Any:
    """The value without the names that somebody chose, and without the list's elements that have one."""
    if isinstance(value, Mapping):
        return {key: _nameless(item) for key, item in value.items() if key not in _NAMES}
    if isinstance(value, list):
        return [_nameless(item) for item in value if not (isinstance(item, Mapping) and _NAMES & item.keys())]
    return value
