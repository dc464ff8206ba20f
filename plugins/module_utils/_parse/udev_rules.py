# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What udev rules (udev(7)) set of a device. Pure. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from .link_settings import fits

_TERM = re.compile(r'(?<![A-Z_])([A-Z_]+)(?:\{([^{}"]*)\})?\s*(==|!=|\+=|-=|:=|=)\s*[ei]?"([^"]*)"')
# Signs for what the device is known by, whose keys in `known` are those of the letters.
_SIGN = re.compile(r"%([kNpSr])|\$(kernel|devnode|tempnode|devpath|sys|root)\b")
_LETTERS = {"kernel": "k", "devnode": "N", "tempnode": "N", "devpath": "p", "sys": "S", "root": "r"}
_FOLDERS = {"S": "/sys", "r": "/dev"}
_PROPERTY = re.compile(r"\$env\{(\w+)\}|%E\{(\w+)\}")
_LONGEST = 1024  # characters of a property: one that others are put together from must not grow without end
Term = Tuple[str, str, str, str]


def assignments(
    text: str,
    known: Mapping[str, str],
    attribute: Callable[[str], Optional[str]],
    above: Callable[[str], Sequence[str]] = lambda name: (),
) -> Iterator[Term]:
    """Key, part, sign and value of what the rules assign to a device, in their order.

    `known` has what the device's event is known by: ACTION, SUBSYSTEM, KERNEL, ENV{DEVTYPE}, and what %N and %p stand
    for; `attribute` reads one of its files, and `above` those of this name of the devices that it is part of. A
    condition about anything else counts as met. What a value takes from the device and isn't known stays as it is
    written.
    """
    seen: Dict[str, str] = dict(known)
    target = ""
    for line in text.replace("\\\n", "").splitlines():
        terms: List[Term] = [] if line.lstrip().startswith("#") else _TERM.findall(line)
        if target and ("LABEL", "", "=", target) not in terms:
            continue
        target = ""
        if not all(_met(term, seen, attribute, above) for term in terms if term[2] in ("==", "!=")):
            continue
        for key, part, sign, value in terms:
            if key == "GOTO":
                target = value
            elif sign in ("=", ":=", "+="):
                text_of = _SIGN.sub(lambda sign: _named(sign, seen), value).replace("$name", seen.get("NAME", "$name"))
                text_of = _PROPERTY.sub(lambda name: seen.get(f"ENV{{{name[1] or name[2]}}}", name[0]), text_of)
                if key == "ENV" and sign != "+=":
                    seen[f"ENV{{{part}}}"] = text_of[:_LONGEST]
                yield key, part, sign, text_of


def _named(sign: "re.Match[str]", seen: Mapping[str, str]) -> str:
    letter = sign[1] or _LETTERS[sign[2]]
    return _FOLDERS.get(letter) or seen.get("KERNEL" if letter == "k" else f"%{letter}", sign[0])


def _met(
    term: Term,
    seen: Mapping[str, str],
    attribute: Callable[[str], Optional[str]],
    above: Callable[[str], Sequence[str]],
) -> bool:
    key, part, sign, pattern = term
    name = f"{key}{{{part}}}" if part else key
    if key in ("ATTR", "TEST"):
        text = attribute(part if key == "ATTR" else pattern)
        holds = text is not None and (key == "TEST" or _fits(text, pattern))
    elif key == "ATTRS" and above(part):
        holds = any(_fits(text, pattern) for text in above(part))
    elif name in seen:
        holds = _fits(seen[name], pattern)
    else:
        return key != "ENV" or sign == "!=" or not part.startswith(".")
    return holds == (sign == "==")


def _fits(text: str, pattern: str) -> bool:
    return any(fits(text.strip(), alternative) for alternative in pattern.split("|"))
