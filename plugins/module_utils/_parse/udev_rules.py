# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What udev rules (udev(7)) set of a device. Pure. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Callable, Dict, Iterator, List, Mapping, Optional, Tuple

from .link_settings import fits

_TERM = re.compile(r'([A-Z_]+)(?:\{([^}"]*)\})?\s*(==|!=|\+=|-=|:=|=)\s*[ei]?"([^"]*)"')
_NAME = re.compile(r"%k|\$kernel|\$name")
Term = Tuple[str, str, str, str]


def assignments(text: str, known: Mapping[str, str], attribute: Callable[[str], Optional[str]]) -> Iterator[Term]:
    """Key, part, sign and value of what the rules assign to a device, in their order.

    `known` has what the device's event is known by: ACTION, SUBSYSTEM, KERNEL, ENV{DEVTYPE}; `attribute` reads one of
    its files. A condition about anything else counts as met.
    """
    seen: Dict[str, str] = dict(known)
    target = ""
    for line in text.replace("\\\n", "").splitlines():
        terms: List[Term] = [] if line.lstrip().startswith("#") else _TERM.findall(line)
        if target and ("LABEL", "", "=", target) not in terms:
            continue
        target = ""
        if not all(_met(term, seen, attribute) for term in terms if term[2] in ("==", "!=")):
            continue
        for key, part, sign, value in terms:
            if key == "GOTO":
                target = value
            elif key == "ENV" and sign in ("=", ":="):
                seen[f"ENV{{{part}}}"] = value
            elif sign in ("=", ":=", "+="):
                yield key, part, sign, _NAME.sub(seen.get("KERNEL", ""), value)


def _met(term: Term, seen: Mapping[str, str], attribute: Callable[[str], Optional[str]]) -> bool:
    key, part, sign, pattern = term
    name = f"{key}{{{part}}}" if part else key
    if key in ("ATTR", "TEST"):
        text = attribute(part if key == "ATTR" else pattern)
        holds = text is not None and (key == "TEST" or _fits(text, pattern))
    elif name in seen:
        holds = _fits(seen[name], pattern)
    else:
        return key != "ENV" or sign == "!=" or not part.startswith(".")
    return holds == (sign == "==")


def _fits(text: str, pattern: str) -> bool:
    return any(fits(text.strip(), alternative) for alternative in pattern.split("|"))
