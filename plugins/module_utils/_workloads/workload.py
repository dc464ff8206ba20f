# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a workload is: wanted values, each with its reason and source. Data only. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Dict, Mapping, NamedTuple


class Choice(NamedTuple):
    """One option's value in a workload, and why."""

    value: Any
    reason: str
    reference: str


# concern → option → choice
Workload = Mapping[str, Mapping[str, Choice]]


def inherited(*layers: Workload) -> Workload:
    """One workload made of several layers; for each option the later layer wins."""
    combined: Dict[str, Dict[str, Choice]] = {}
    for layer in layers:
        for concern, choices in layer.items():
            combined.setdefault(concern, {}).update(choices)
    return combined


def values(workload: Workload) -> Dict[str, Dict[str, Any]]:
    """concern → option → value: what a user would write as `tune_concerns`."""
    return {
        concern: {option: choice.value for option, choice in choices.items()} for concern, choices in workload.items()
    }
