# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""At which versions and on which architectures what a program asks for changes, by its vendor's words."""

from __future__ import annotations

from typing import Optional

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._programs.registry import NAMES, program_of

ASKED = [
    # program, version, architecture, knob, values that it is content with
    ("mongodb", "4.4.29", "x86_64", "hugepages.thp", "never madvise"),
    ("mongodb", "7.0.28", "x86_64", "hugepages.thp", "never madvise"),
    ("mongodb", "7.3.99.99", "aarch64", "hugepages.thp", "never madvise"),
    ("mongodb", "8", "x86_64", "hugepages.thp", "always"),
    ("mongodb", "8.0.0", "aarch64", "hugepages.thp", "always"),
    ("mongodb", "10.1", "x86_64", "hugepages.thp", "always"),
    ("mongodb", "", "x86_64", "hugepages.thp", None),
    ("mongodb", "7.0.28", "x86_64", "memory.overcommit", "heuristic always"),
    ("mongodb", "8.0.0", "x86_64", "memory.overcommit", "always"),
    ("mongodb", "7.0.28", "x86_64", "memory.swappiness", None),
    ("mongodb", "7.0.28", "x86_64", "hugepages.max_ptes_none", None),
    ("mongodb", "8.2.1", "x86_64", "hugepages.max_ptes_none", "0"),
    ("elasticsearch", "7.17.28", "x86_64", "memory.max_map_count", "262144"),
    ("elasticsearch", "8.9.2", "x86_64", "memory.max_map_count", "262144"),
    ("elasticsearch", "8.15.5", "x86_64", "memory.max_map_count", "262144"),
    ("elasticsearch", "8.16", "x86_64", "memory.max_map_count", "1048576"),
    ("elasticsearch", "9.0.0", "x86_64", "memory.max_map_count", "1048576"),
    ("elasticsearch", "", "x86_64", "memory.max_map_count", "262144"),
    ("java", "", "aarch64", "hugepages.thp", "madvise never"),
    ("java", "", "x86_64", "hugepages.thp", None),
    ("keydb", "", "x86_64", "memory.overcommit", "always never"),
    ("valkey", "", "x86_64", "memory.overcommit", "always"),
]


@pytest.mark.parametrize(("name", "version", "architecture", "knob", "values"), ASKED)
def test_what_a_version_asks_for(name: str, version: str, architecture: str, knob: str, values: Optional[str]) -> None:
    known, _undecided = program_of(name).asks(version, architecture)
    wishes = [wish for wish in known if wish.knob == knob]
    assert (" ".join(map(str, (wishes[-1].value, *wishes[-1].also))) if wishes else None) == values


@pytest.mark.parametrize("name", NAMES)
def test_each_version_has_at_most_one_exact_wish_of_a_knob(name: str) -> None:
    """Of two that hold for one version the later is a larger minimum, or the program would contradict itself."""
    program = program_of(name)
    ends = {end for wish in program.wishes for end in (wish.since, wish.before) if end}
    for version in (*ends, "0", "9999"):
        for architecture in ("x86_64", "aarch64"):
            known, _undecided = program.asks(version, architecture)
            for knob in {wish.knob for wish in known}:
                values = [wish.value for wish in known if wish.knob == knob]
                assert len(values) == 1 or values == sorted(values, key=int), (version, knob)
