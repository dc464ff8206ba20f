# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Entries after the Boot Loader Specification, and GRUB's environment block. PRIVATE to the collection."""

from __future__ import annotations

from typing import Dict, List, Mapping, Tuple

from . import cmdline

# Twice what a command line of 2,048 bytes has room for.
MAX_ARGUMENTS = 2048


def parse(text: str) -> Dict[str, Tuple[str, ...]]:
    """Key → values, in order; a key may come more than once (initrd, options). Raises nothing."""
    fields: Dict[str, List[str]] = {}
    for line in text.splitlines():
        key, value = [*line.split(None, 1), "", ""][:2]
        if key and not key.startswith("#"):
            fields.setdefault(key, []).append(value.strip())
    return {key: tuple(values) for key, values in fields.items()}


def environment(text: str) -> Dict[str, str]:
    """Name → value of a grubenv: lines name=value, "#" is padding. Raises nothing."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line and not line.startswith("#"))
    return {name: value.replace("\\\\", "\\") for name, _equals, value in pairs}


def arguments(options: Tuple[str, ...], variables: Mapping[str, str]) -> Tuple[str, ...]:
    """The arguments of an entry, with variables such as $kernelopts replaced; an unknown variable is empty.

    At most MAX_ARGUMENTS, which is more than any kernel takes.
    """
    words: List[str] = []
    known: Dict[str, Tuple[str, ...]] = {}
    for token in cmdline.tokens(" ".join(options)):
        if token.startswith("$"):
            name = token[1:].strip("{}")
            if name not in known:
                known[name] = cmdline.tokens(variables.get(name, ""))
            words += known[name]
        else:
            words.append(token)
        if len(words) > MAX_ARGUMENTS:
            break
    return tuple(words[:MAX_ARGUMENTS])
