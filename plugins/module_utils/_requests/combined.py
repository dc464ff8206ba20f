# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Combining several workloads on one host. Pure. PRIVATE to the collection.

Knob by knob the later workload wins. Where the value is a bound, such as a limit, the value that
satisfies all workloads is used. Where exact values differ, a finding names the workloads.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .._error import NearmetalError
from .._planning.bounds import satisfying
from .._planning.concern import Concern
from .._planning.programs import PAGE
from .._planning.waivers import REFERENCE
from .._programs.registry import NAMES, program_of
from .._words import choices, in_words, shown
from .._workloads.registry import OWN, WORKLOADS

_LONGEST = 40  # characters of a value in a sentence


def short(value: Any) -> str:
    """A value in a sentence."""
    return in_words(value, "nothing", _LONGEST)


class Contradiction(NamedTuple):
    """Workloads or programs of one run that want different exact values of one option, in the order of their names."""

    concern: str
    option: str
    claims: Tuple[Tuple[str, Any], ...]
    of_programs: bool = False
    exact: bool = False  # the last one wants exactly its value, the others more or less of a limit

    @property
    def reference(self) -> str:
        """The page that says how they are combined."""
        return PAGE if self.of_programs else REFERENCE

    def sentence(self) -> str:
        """Who wants what, what is used, and how to decide."""
        groups: List[Tuple[List[str], Any]] = []
        for name, value in self.claims:
            agreeing = next((names for names, group_value in groups if group_value == value), None)
            if agreeing is None:
                groups.append(([name], value))
            else:
                agreeing.append(name)
        wishes = [
            f"{' and '.join(names)} {'want' if len(names) > 1 else 'wants'} {short(value)}" for names, value in groups
        ]
        last, value = self.claims[-1]
        why = "wants exactly that" if self.exact else "comes last"
        return (
            f"{', '.join(wishes)}: {short(value)} is used, because {last} {why}; set"
            f" tune_concerns.{self.concern}.{self.option} to decide otherwise"
            + (", leave one of them out of tune_program, or give each a host of its own" if self.of_programs else "")
        )


def require_known(names: Sequence[str]) -> None:
    """Raise NearmetalError for an empty list, an unknown workload, or one that is named twice."""
    if not names:
        raise NearmetalError("tune_workload is an empty list: name one, such as base, or leave it out")
    for name in names:
        if name not in WORKLOADS:
            if not name:
                raise NearmetalError("tune_workload is empty: name one, such as base, or leave it out")
            if name.split()[1:] and {*name.split()} <= {*WORKLOADS, *NAMES}:
                raise NearmetalError(f"tune_workload is {shown(name)}: separate several names by commas")
            word = name.lower().replace("-", "_").replace(" ", "_")
            if word in NAMES:
                workload = program_of(word).workload
                raise NearmetalError(
                    f"workload {shown(name)} is unknown; {word} is a program, and {workload} is for such programs: set"
                    f" tune_workload: {workload} and tune_program: {word}"
                )
            raise NearmetalError(
                f"workload {shown(name)} is unknown; there are auto, which recognizes what runs on the host, and"
                f" {choices(sorted(WORKLOADS), word)}"
            )
        if names.count(name) > 1:
            raise NearmetalError(f"workload names {name} twice: name it once; where two differ, the later one wins")


def combined(
    names: Sequence[str], concerns: Mapping[str, Concern]
) -> Tuple[Dict[str, Dict[str, Any]], List[Contradiction]]:
    """Concern → option → value, and the options on which the workloads don't agree.

    A value that a workload inherits gives way to one that another workload sets itself, unless it is a bound.
    """
    options_of: Dict[str, Dict[str, Any]] = {}
    contradictions = []
    for name in names:
        for concern, chosen in WORKLOADS[name].items():
            options = options_of.setdefault(concern, {})
            for option in chosen:
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
    return options_of, contradictions


def _claims(names: Sequence[str], concern: str, option: str, inherited: bool) -> List[Tuple[str, Any]]:
    """Workload → value, of all that have the option, or only of those that set it themselves, where there are any."""
    choices = [(name, WORKLOADS[name].get(concern, {}).get(option)) for name in names]
    claims = [(name, choice.value) for name, choice in choices if choice is not None]
    own_claims = [(name, value) for name, value in claims if option in OWN.get(name, {}).get(concern, {})]
    return own_claims if own_claims and not inherited else claims


def reason_of(names: Sequence[str], concern: str, option: str, value: Any) -> Optional[Tuple[str, str]]:
    """Why the last of the workloads that chose this value did, and the source; None where the concern decides.

    It does for `auto`, and where a playbook that spells its workload out was given another value.
    """
    name = chooser(names, concern, option, value)
    if name is None or value == "auto":
        return None
    choice = WORKLOADS[name][concern][option]
    return f"for {name}: {choice.reason}", choice.reference


def chooser(names: Sequence[str], concern: str, option: str, value: Any) -> Optional[str]:
    """The last of the workloads that chose this value; None if none did."""
    choices = ((name, WORKLOADS[name].get(concern, {}).get(option)) for name in reversed(names))
    return next((name for name, choice in choices if choice is not None and choice.value == value), None)
