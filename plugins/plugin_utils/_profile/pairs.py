# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Profiles of both states, in pairs of their own after the verdict, so that perf disturbs no figure. PRIVATE."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, Mapping, Tuple

from ...module_utils._error import NearmetalError
from ...module_utils._profile import advice
from ...module_utils._profile.folding import Tree
from ...module_utils._prove.statistics.order import TUNED, UNTUNED, order
from ...module_utils._words import counted
from .._clean import mapping, text
from .._files import short_path, writing
from .._files import write as write_file
from . import page, stacks
from .difference import Frame, Profile, frames

# With fewer a single function of hundreds can't have enough evidence: it at most doubles with a pair.
PAIRS = 16
_MOST_NAMED = 50


def compare(step: Callable[[str], Mapping[str, Any]], seed: int, host: str, base: str) -> Dict[str, Any]:
    """Take the profiles by `step`, which takes that of a state, and write them beside the record.

    Raises NearmetalError when the host can't be reached or isn't healthy. What only keeps it from being profiled is in
    the result.
    """
    trees: Dict[str, List[Tree]] = {UNTUNED: [], TUNED: []}
    pairs: List[Tuple[Profile, Profile]] = []
    last: Mapping[str, Any] = {}
    for number in range(1, PAIRS + 1):
        pair: Dict[str, Tree] = {}
        for state in order(seed, host, "profile", number, 1):
            answer = step(state)
            if answer.get("unhealthy"):
                raise NearmetalError(f"the host was profiled {state}, and isn't healthy: {text(answer['unhealthy'])}")
            found = mapping(answer.get("profile"))
            try:
                pair[state] = stacks.unpacked(found.get("stacks"))
            except NearmetalError as error:
                return _written(base, host, trees, pairs, last, f": {text(found.get('failed') or error)}")
            last = found
        for state, tree in pair.items():
            trees[state] = [stacks.as_tree(stacks.merged([[*trees[state], tree]]))]
        untuned, tuned = (Profile(sum(pair[state].own), pair[state].shares()) for state in (UNTUNED, TUNED))
        pairs.append((untuned, tuned))
    return _written(base, host, trees, pairs, last, "")


def _written(
    base: str,
    host: str,
    trees: Mapping[str, List[Tree]],
    pairs: List[Tuple[Profile, Profile]],
    last: Mapping[str, Any],
    says: str,
) -> Dict[str, Any]:
    found = frames(pairs)
    moved = [frame for frame in found if frame.moved]
    said = f"{len(moved)} of {counted(len(found), 'function')} have another share when tuned"
    result: Dict[str, Any] = {
        "says": f"{counted(len(pairs), 'pair')} of profiles; {said}{says}",
        "moved": [_row(frame) for frame in moved[:_MOST_NAMED]],
        "advice": advice.grown((frame.name, frame.untuned, frame.tuned) for frame in moved),
    }
    if not pairs:
        return {**result, "says": f"not profiled{says}"}
    samples = sum(profile.samples for pair in pairs for profile in pair)
    about = {**last, "samples": samples, "top": [], "counters": {}, "advice": result["advice"]}
    with writing(f"the profile {base}-profile.html"):
        for state, of_state in trees.items():
            write_file(f"{base}-{state}.folded", "".join(f"{line}\n" for tree in of_state for line in tree.lines()))
        result["page"] = short_path(
            write_file(f"{base}-profile.html", page.render(host, trees, about, time.time(), found))
        )
    return result


def _row(frame: Frame) -> Dict[str, Any]:
    return {
        "name": frame.name,
        UNTUNED: round(frame.untuned, 4),
        TUNED: round(frame.tuned, 4),
        "evidence": round(min(frame.evidence, 1e9), 1),
    }
