# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The difference of two tunings that are compared with each other, in place of tuned and untuned. PRIVATE."""

from __future__ import annotations

from typing import List, NamedTuple, Sequence, Tuple

from ..._levers.registry import lever_of
from ..._plan import Action


class Comparison(NamedTuple):
    """What two tunings have in common, and what leads from the other one to the one under test."""

    shared: Tuple[Action, ...]  # both tunings set the same value
    difference: Tuple[Action, ...]  # from the other tuning's value, or the original, to the value under test


def compare(another: Sequence[Action], tuned: Sequence[Action]) -> Comparison:
    """Compare two tunings, planned on the same untuned host.

    Raises NearmetalError for an original that can't be set.
    """
    unmatched = {action.key: action for action in another}
    shared: List[Action] = []
    difference: List[Action] = []
    for action in tuned:
        other = unmatched.pop(action.key, None)
        if other is None:
            difference.append(action)
        elif lever_of(action.what).values.same(other.after, action.after):
            shared.append(action)
        else:
            difference.append(action._replace(before=other.after))
    difference += (action._replace(before=action.after, after=action.before) for action in unmatched.values())
    for action in difference:
        for value in (action.before, action.after):
            lever_of(action.what).check(action.where, value)
    return Comparison(tuple(shared), tuple(difference))
