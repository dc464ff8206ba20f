# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a concern is to everything above it. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Callable, Mapping, NamedTuple, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Plan, Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.knob import Knob


class Concern(NamedTuple):
    """One thing that is tuned or checked: its options, the facts it needs, and its pure plan."""

    name: str
    options: Mapping[str, Mapping[str, Any]]  # in the form of an Ansible argument spec
    domains: Tuple[str, ...]  # of _facts.facts.DOMAINS
    plan: Callable[[Facts, Wanted], Plan]
    after: Tuple[str, ...] = ()  # concerns without which this plan is worth nothing
    # Its findings say which places they are about, as keys of `now` or by `where`: a place that none of them names any
    # more is taken back by itself, although its knob is still managed elsewhere.
    by_place: bool = False
    knobs: Tuple[Knob, ...] = ()
    heading: int = 10  # of a report: one of the nine of AWS's talk of 2017; 10 is the last, for all others

    @property
    def checks(self) -> Tuple[str, ...]:
        """The knobs that are no options of its own, on any host: what it looks at, or what a suboption moves.

        So a waiver of a check that doesn't apply to this host is known from a misspelt one.
        """
        checks = (knob for knob in self.knobs if knob.name not in self.options or "default" in (knob.spec or ()))
        return tuple(dict.fromkeys(knob.name for knob in checks))

    @property
    def bounds(self) -> Mapping[str, str]:
        """The options of which a workload's value is a bound, each with its kind."""
        return {knob.name: knob.bound for knob in self.knobs if knob.bound}
