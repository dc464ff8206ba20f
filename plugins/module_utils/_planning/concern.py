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
    # Its findings name their places, as keys of `now` or by `where`: a place that no finding names any more is taken
    # back, although the knob is still managed at other places.
    by_place: bool = False
    knobs: Tuple[Knob, ...] = ()
    heading: int = 10  # number of its heading in a report: 1 to 9 as in AWS's talk of 2017, 10 for all other concerns

    @property
    def checks(self) -> Tuple[str, ...]:
        """The knobs without an option of their own, on any host: what the concern checks, or what a suboption sets.

        They tell a waiver of a check that doesn't apply to this host from a misspelt waiver.
        """
        checks = (knob for knob in self.knobs if knob.name not in self.options or "default" in (knob.spec or ()))
        return tuple(dict.fromkeys(knob.name for knob in checks))

    @property
    def bounds(self) -> Mapping[str, str]:
        """The options of which a workload's value is a bound, each with its kind."""
        return {knob.name: knob.bound for knob in self.knobs if knob.bound}
