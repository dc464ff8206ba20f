# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the target of a pointer in a page or table exists: a file, a test in it, a heading of a page."""

from __future__ import annotations

import re

from dev import ROOT


def headings(name: str) -> "set[str]":
    """The anchors of a page, as GitHub makes them."""
    lines = re.findall(r"^#+ (.+)$", (ROOT / name).read_text("utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", line.lower()).strip().replace(" ", "-") for line in lines}


def trouble(pointer: str) -> str:
    """Why a pointer leads nowhere; empty when it leads somewhere."""
    name, separator, place = pointer.partition("::") if "::" in pointer else pointer.partition("#")
    if not (ROOT / name).is_file():
        return f"{name} isn't there"
    if separator == "::" and not re.search(rf"^def {re.escape(place)}\(", (ROOT / name).read_text("utf-8"), re.M):
        return f"{name} has no test {place}"
    if separator == "#" and place not in headings(name):
        return f"{name} has no heading #{place}"
    return ""
