# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text of a tuned profile (tuned.conf(5)) → sections. Pure. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Dict, Mapping

# Section → option → value, as the file has them.
Profile = Dict[str, Dict[str, str]]

# What tuned accepts as true, in lower case.
TRUE = ("1", "true")
_NOT_INHERITED = ("type", "enabled", "devices")  # options that a section sets itself, or leaves at the default

_SECTION = re.compile(r"\[([^\]]*)\]")
_COMMENT = re.compile(r"(^|\s)[#;].*$")


def parse(text: str) -> Profile:
    """The sections of a profile; a line that is neither a section nor `option=value` is left out."""
    profile: Profile = {}
    options: Dict[str, str] = {}
    for raw in text.splitlines():
        line = _COMMENT.sub("", raw).strip()
        section = _SECTION.fullmatch(line)
        if section:
            options = profile.setdefault(section[1].strip(), {})
        elif "=" in line:
            name, _sign, value = line.partition("=")
            options[name.strip()] = value.strip()
    return profile


def merged(parent: Mapping[str, Mapping[str, str]], child: Mapping[str, Mapping[str, str]]) -> Profile:
    """The profile `child`, which includes `parent`, and whose options win.

    `replace` drops all of a section's earlier options, `drop` those that it names.
    """
    profile = {section: dict(options) for section, options in parent.items()}
    for section, options in child.items():
        if options.get("replace", "").lower() in TRUE:
            profile[section] = {}
        added = dict(options)
        dropped = re.split(r"[,;\s]+", added.pop("drop", ""))
        result = profile.setdefault(section, {})
        for option in (*_NOT_INHERITED, *dropped):
            result.pop(option, None)
        result.update(added)
    return profile
