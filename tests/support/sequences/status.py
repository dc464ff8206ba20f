# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares `nearmetal status` with the files of the host, read without the engine."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, Dict, Iterator, Mapping, Optional, Set

_FILES: Mapping[str, str] = {
    "clocksource.source": "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "hugepages.thp": "/sys/kernel/mm/transparent_hugepage/enabled",
    "hugepages.defrag": "/sys/kernel/mm/transparent_hugepage/defrag",
}


def untrue(found: Mapping[str, Any], root: Path, twin: Path, unknown: Set[str], boots: int) -> Iterator[str]:
    """What isn't as it is shown; until it boots the host's twin has what was before, but for `unknown` places."""
    for concern in found["concerns"]:
        for knob in concern["knobs"]:
            name = f"{concern['name']}.{knob['knob']}"
            shown, before = _shown(knob["now"]), _shown(knob["before_nearmetal"])
            if knob["knob"] == "persist" and knob["where"].startswith("/"):
                if (shown is not None) != (root / knob["where"][1:]).exists():
                    yield f"{name} is shown as {shown}, and its file is another matter"
                continue
            path = _path(root, name, knob["where"])
            if path is None or shown is None:
                continue
            if shown != _value(root, path):
                yield f"{name} is shown as {shown}, and {path} has {_value(root, path)}"
            if before is not None and not boots and path not in unknown and before != _value(twin, path):
                yield f"{name} is said to have been {before}, and it was {_value(twin, path)}"
    names = {concern["name"] for concern in found["concerns"]}
    if names != _remembered(root):
        yield f"status shows {sorted(names)}, and remembered is {sorted(_remembered(root))}"


def _shown(value: Any) -> Optional[str]:
    return None if value is None or isinstance(value, (dict, list)) else str(value)


def _path(root: Path, name: str, where: str) -> Optional[str]:
    """The kernel's file of a knob with one value."""
    if name in _FILES:
        return _FILES[name]
    if name == "network_stack.mtu":
        nics = sorted((root / "sys/class/net").iterdir())
        found = [nic.name for nic in nics if os.path.basename(os.path.realpath(nic / "device")) == where]
        return f"/sys/class/net/{found[0]}/mtu" if found else None
    path = f"/proc/sys/{where.replace('.', '/')}"
    return path if where and (root / path[1:]).is_file() else None


def _value(root: Path, path: str) -> Optional[str]:
    """The value of a kernel file; of a list of words, the chosen one."""
    try:
        text = " ".join((root / path[1:]).read_text().split())
    except OSError:
        return None
    chosen = re.search(r"\[(.*?)\]", text)
    return chosen[1] if chosen else text


def _remembered(root: Path) -> Set[str]:
    folder = root / "var/lib/nearmetal"
    content: Dict[str, Any] = {}
    places = [*(folder / f"{name}.json" for name in ("wanted", "journal")), root / "run/nearmetal/until_boot.json"]
    for place in places:
        name = place.stem
        content[name] = json.loads(place.read_text()) if place.exists() else {"concerns": {}, "entries": []}
    entries = [*content["journal"]["entries"], *content["until_boot"]["entries"]]
    names = {*content["wanted"]["concerns"], *(entry["concern"] for entry in entries)}
    return names - {"tune", "unit"}
