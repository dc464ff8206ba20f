# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a concern is to everything above it. PRIVATE to the collection."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Mapping, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Plan, Wanted


@dataclass(frozen=True)
class Concern:
    """One thing that is tuned or checked: its options, the facts it needs, and its pure plan."""

    name: str
    options: Mapping[str, Mapping[str, Any]]  # in the form of an Ansible argument spec
    domains: Tuple[str, ...]  # of _facts.facts.DOMAINS
    plan: Callable[[Facts, Wanted], Plan]
    after: Tuple[str, ...] = ()  # concerns whose failure makes this one's plan worthless
    # Its findings say which places they are about, as keys of `now` or by `where`: a place that none of them names any
    # more is taken back by itself, although its knob is still managed elsewhere.
    by_place: bool = False
    # Knobs of its findings that are no options of its own: what it looks at, or a suboption's. On any host, so that a
    # waiver of one that isn't here is told from a misspelt one.
    checks: Tuple[str, ...] = ()
    bounds: Mapping[str, str] = field(default_factory=dict)  # options of which a workload's value is a bound → its kind
