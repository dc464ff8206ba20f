# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several workloads on one host, as one. Pure. PRIVATE to the collection.

The later one wins knob by knob. Of a knob whose value is a bound, such as a limit, the value is
asked for that satisfies all of them. Where exact values differ, those who said them are named.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.bounds import satisfying
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.concern import Concern
from ansible_collections.nearmetal.ec2.plugins.module_utils._words import in_words, shown
from ansible_collections.nearmetal.ec2.plugins.module_utils._workloads.registry import OWN, WORKLOADS

_LONGEST = 40  # characters of a value in a sentence


@dataclass(frozen=True)
class Contradiction:
    """Workloads of one run that want different exact values of one option, in the order in which they were named."""

    concern: str
    option: str
    claims: Tuple[Tuple[str, Any], ...]

    def sentence(self) -> str:
        """Who wants what, what is used, and how to decide."""
        groups: List[Tuple[List[str], Any]] = []
        for name, value in self.claims:
            same = next((names for names, other in groups if other == value), None)
            if same is None:
                groups.append(([name], value))
            else:
                same.append(name)
        each = [
            f"{' and '.join(names)} {'want' if len(names) > 1 else 'wants'} {in_words(value, 'nothing', _LONGEST)}"
            for names, value in groups
        ]
        last, value = self.claims[-1]
        return (
            f"{', '.join(each)}: {in_words(value, 'nothing', _LONGEST)} is used, because {last} comes last; set"
            f" tune_concerns.{self.concern}.{self.option} to decide otherwise"
        )


def demand_known(names: Sequence[str]) -> None:
    """Raise NearmetalError for names that are no workloads, or none at all, or for one that is named twice."""
    if not names:
        raise NearmetalError("workload is an empty list: name one, such as base, or leave the option out")
    for name in names:
        if name not in WORKLOADS:
            raise NearmetalError(
                f"workload {shown(name)} is unknown; there are {', '.join(sorted(WORKLOADS))}, and auto, which"
                " recognizes what runs on the host"
            )
        if names.count(name) > 1:
            raise NearmetalError(f"workload names {name} twice: name it once, where two differ the later one wins")


def combined(
    names: Sequence[str], concerns: Mapping[str, Concern]
) -> Tuple[Dict[str, Dict[str, Any]], List[Contradiction]]:
    """Concern → option → value, and what the workloads don't agree on.

    What a workload inherits gives way to what another one says itself, unless it is a bound.
    """
    found: Dict[str, Dict[str, Any]] = {}
    contradictions = []
    for name in names:
        for concern, choices in WORKLOADS[name].items():
            options = found.setdefault(concern, {})
            for option in choices:
                if option in options:
                    continue
                kind = concerns[concern].bounds.get(option)
                claims = _claims(names, concern, option, inherited=kind is not None)
                options[option] = claims[-1][1]
                if kind is not None:
                    for _name, value in claims:
                        options[option] = satisfying(kind, options[option], value)
                elif any(value != claims[0][1] for _name, value in claims):
                    contradictions.append(Contradiction(concern, option, tuple(claims)))
    return found, contradictions


def _claims(names: Sequence[str], concern: str, option: str, inherited: bool) -> List[Tuple[str, Any]]:
    """Workload → value of each that has the option; of those that say it themselves, if any does."""
    every = [(name, WORKLOADS[name].get(concern, {}).get(option)) for name in names]
    claims = [(name, choice.value) for name, choice in every if choice is not None]
    own = [(name, value) for name, value in claims if option in OWN.get(name, {}).get(concern, {})]
    return own if own and not inherited else claims
