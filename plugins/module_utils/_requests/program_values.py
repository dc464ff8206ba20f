# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What programs ask of a concern, over what the workload has for it. Pure. PRIVATE to the collection.

A program beats the workload, which is only for its kind. Of a limit the value that satisfies both is used. Where an
exact value of the workload suits every program, it stays. A user's own value beats both, and its finding says so.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, FrozenSet, List, Mapping, NamedTuple, Sequence, Set, Tuple

from .._planning.bounds import satisfying
from .._planning.concern import Concern
from .._programs.program import Wish
from .combined import Contradiction, short


class Claim(NamedTuple):
    """A wish of the maintainers of one of the host's programs."""

    title: str
    wish: Wish


class Asked(NamedTuple):
    """What programs change of a concern: option → value, the reasons with their sources, and contradictions."""

    values: Mapping[str, Any]
    reasons: Mapping[str, Tuple[str, str]]
    exact: FrozenSet[str]  # limits that a program wants to be exactly so
    contradictions: Tuple[Contradiction, ...]


def asked(
    claims: Sequence[Claim], concern: Concern, of_workload: Mapping[str, Any], who: Callable[[str, Any], str]
) -> Asked:
    """What the claims make of the workload's options of a concern; `who` names what chose an option's value."""
    values: Dict[str, Any] = {}
    reasons: Dict[str, Tuple[str, str]] = {}
    contradictions: List[Contradiction] = []
    exact: Set[str] = set()
    by_option: Dict[str, List[Claim]] = {}
    for claim in claims:
        name, _dot, option = claim.wish.knob.partition(".")
        if name == concern.name:
            by_option.setdefault(option, []).append(claim)
    for option, claimed in by_option.items():
        present = of_workload.get(option)
        strict = [claim for claim in claimed if claim.wish.exact]
        of_option, bound = (strict, None) if strict else (claimed, concern.bounds.get(option))
        exact.update([option] if strict else [])
        value = _satisfying(bound, present, of_option) if bound else _suiting(present, of_option)
        agreed = value is not None
        value = value if agreed else of_option[-1].wish.value
        if not all(_content(concern, claim, value) for claim in claimed):
            by_weight = sorted(claimed, key=lambda claim: claim.wish.exact)  # who decides comes last
            claims_of_it = tuple((claim.title, claim.wish.value) for claim in by_weight)
            contradictions.append(Contradiction(concern.name, option, claims_of_it, of_programs=True, exact=agreed))
        if value == present:
            continue
        values[option] = value
        chooser = next((claim for claim in reversed(of_option) if claim.wish.value == value), of_option[-1])
        before = f"{who(option, present)} says {short(present)}, " if present is not None else ""
        says = f"{chooser.title}'s maintainers say {short(value)}"
        reasons[option] = (f"{before}{says}: {chooser.wish.reason}", chooser.wish.page.reference)
    return Asked(values, reasons, frozenset(exact), tuple(contradictions))


def overruled(claims: Sequence[Claim], concern: Concern, of_user: Mapping[str, Any]) -> Dict[str, Tuple[str, str]]:
    """Option → what its finding says of a user's own value with which a program isn't content, and the source."""
    said: Dict[str, Tuple[str, str]] = {}
    for claim in claims:
        name, _dot, option = claim.wish.knob.partition(".")
        own = of_user.get(option)
        if name == concern.name and own is not None and not _content(concern, claim, own):
            wish = claim.wish
            words = f"you say {short(own)}, {claim.title}'s maintainers say {short(wish.value)}: {wish.reason}"
            said[option] = words, wish.page.reference
    return said


def _content(concern: Concern, claim: Claim, value: Any) -> bool:
    """Whether a program is content with this value."""
    wish = claim.wish
    bound = concern.bounds.get(wish.knob.partition(".")[2])
    if bound is None or wish.exact:
        return wish.suits(value)
    return str(satisfying(bound, value, wish.value)) == str(value)


def _satisfying(bound: str, present: Any, claims: Sequence[Claim]) -> Any:
    value = claims[0].wish.value if present is None else present
    for claim in claims:
        value = satisfying(bound, value, claim.wish.value)
    return value


def _suiting(present: Any, claims: Sequence[Claim]) -> Any:
    """The workload's value, or else the first wish of a later program, that suits all programs; None if none does."""
    wishes = [claim.wish for claim in claims]
    choices = [present, *(wish.value for wish in reversed(wishes))]
    choices += [value for wish in reversed(wishes) for value in wish.also]
    return next((value for value in choices if all(wish.suits(value) for wish in wishes)), None)
