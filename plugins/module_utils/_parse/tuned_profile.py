# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text of a tuned profile (tuned.conf(5)) → sections. Pure. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Dict, Mapping

# Section → option → value, as the file has them.
Profile = Dict[str, Dict[str, str]]

# What tuned takes for a yes, in small letters.
TRUE = ("1", "true")
_OF_EACH = ("type", "enabled", "devices")  # a section says these for itself, or has the default

_SECTION = re.compile(r"\[([^\]]*)\]")
_COMMENT = re.compile(r"(^|\s)[#;].*$")


def parse(text: str) -> Profile:
    """The sections of a profile. A line that is neither section nor `option=value` says nothing."""
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
    """A profile that includes another: its options win.

    `replace` drops all of a section's earlier options, `drop` those that it names.
    """
    both = {section: dict(options) for section, options in parent.items()}
    for section, options in child.items():
        if options.get("replace", "").lower() in TRUE:
            both[section] = {}
        added = dict(options)
        dropped = re.split(r"[,;\s]+", added.pop("drop", ""))
        result = both.setdefault(section, {})
        for option in (*_OF_EACH, *dropped):
            result.pop(option, None)
        result.update(added)
    return both
