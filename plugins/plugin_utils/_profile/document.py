# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The result of a profile as a file, and the last one of each host out of these files. PRIVATE to the collection."""

from __future__ import annotations

import json
import os
import re
import time
from functools import partial
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple

from .._clean import NAME, Budget, mapping, mappings, text
from .._files import latest, made_of

FOLDER = "profile"
_SCHEMA, _VERSION = "nearmetal.ec2/profile", 1
_NAME = re.compile(r"(?P<host>.+)-(?P<when>[0-9]{8}T[0-9]{6}Z)\.json", re.ASCII)
_LARGEST = 4 * 1024 * 1024  # bytes
_MOST = 50  # pieces of advice
_OLD = 30 * 86400  # seconds after which a load is another one


class Last(NamedTuple):
    """The last profile of a host."""

    recorded: float  # seconds since 1970
    samples: int
    advice: Tuple[Tuple[str, str, str], ...]  # name, sentence and setting; an empty setting: there is none

    def sentences(self) -> List[Tuple[str, str]]:
        """For each piece of advice its name and one sentence, with the day; without any advice a single one."""
        day = time.strftime("profile of %d %b %Y", time.gmtime(self.recorded)).replace(" 0", " ")
        rows = [(name, f"{day}: {says}{f' ({knob})' if knob else ''}") for name, says, knob in self.advice]
        return rows or [("", f"{day}: {self.samples:,} samples, of which no setting would change much")]


def content(host: str, result: Mapping[str, Any], now: float) -> str:
    """The text of the file."""
    known = {name: value for name, value in result.items() if name not in ("changed", "invocation", "failed")}
    return json.dumps(
        {"schema": _SCHEMA, "version": _VERSION, "host": host, "recorded": round(now), "result": Budget().value(known)},
        indent=1,
    )


def last(directory: str, hosts: Iterable[str], now: float) -> Dict[str, Last]:
    """The latest profile of each host, none that is older than 30 days. Damaged files are ignored."""
    found = {}
    for host, paths in latest(os.path.join(directory, FOLDER), _NAME, hosts):
        known = next(filter(None, (made_of(path, _LARGEST, partial(_last, host)) for path in paths)), None)
        if known is not None and now - known.recorded < _OLD:
            found[host] = known
    return found


def _last(host: str, plain: Mapping[str, Any]) -> Optional[Last]:
    if [plain.get(name) for name in ("schema", "version", "host")] != [_SCHEMA, _VERSION, host]:
        return None
    result, recorded = mapping(plain.get("result")), float(plain["recorded"])
    time.gmtime(recorded)
    rows = mappings(result.get("advice"), _MOST)
    advice = ((text(row.get("name"), NAME), text(row.get("says")), text(row.get("knob") or "", NAME)) for row in rows)
    return Last(recorded, int(result.get("samples") or 0), tuple(advice))
