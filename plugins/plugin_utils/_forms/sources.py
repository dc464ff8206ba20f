# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the sources that findings name can be read. PRIVATE to the collection.

sources.json beside this file has the name of each source as findings write it, with its address, its title, and the
day on which somebody last looked whether the address exists.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Mapping, NamedTuple, Tuple

FILE = Path(__file__).parent / "sources.json"
# Pages of this repository are named by their path: docs/unit.md.
PAGES = "https://github.com/nearmetal/ec2/blob/main/"
_PAGE = re.compile(r"docs/[\w/]+\.md(#[\w-]+)?")
SEPARATOR = "; "


class Source(NamedTuple):
    """A page that a finding rests on."""

    url: str
    title: str
    checked: str  # a day such as 2026-11-25; empty if nobody looked


@lru_cache(maxsize=1)
def sources() -> Mapping[str, Source]:
    """Every source by the name that findings give it."""
    return {name: Source(**entry) for name, entry in json.loads(FILE.read_text(encoding="utf-8")).items()}


def links(reference: str) -> Tuple[Tuple[str, str], ...]:
    """The sources that a finding's reference names, in its order: name and address, which is empty if unknown."""
    return tuple((name, address(name)) for name in reference.split(SEPARATOR) if name)


def address(name: str) -> str:
    """Where one source can be read; empty if it is none that this project knows."""
    known = sources().get(name)
    url = known.url if known else name if _PAGE.fullmatch(name) else ""
    return f"{PAGES}{url}" if _PAGE.fullmatch(url) else url
