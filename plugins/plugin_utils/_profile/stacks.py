# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tree of functions that a host sent, and of two trees one. PRIVATE to the collection."""

from __future__ import annotations

import base64
import zlib
from typing import Any, Dict, Iterable, List, NamedTuple, Sequence

from ...module_utils._error import NearmetalError
from ...module_utils._parse import json_text
from ...module_utils._profile.folding import Tree, tree_of

_MOST_BYTES = 32 * 1024 * 1024  # of the tree as JSON: twice the largest


def unpacked(text: Any) -> Tree:
    """The tree out of a host's result. Raises NearmetalError for what no host of this collection sends."""
    try:
        unpacker = zlib.decompressobj()
        plain = unpacker.decompress(base64.b64decode(str(text), validate=True), _MOST_BYTES)
        if unpacker.unconsumed_tail:
            raise ValueError("too large")
        return tree_of(json_text.parse(plain.decode()))
    except (ValueError, zlib.error) as error:
        raise NearmetalError(f"the host sent stacks of another form ({error}): its profile isn't drawn") from None


class Merged(NamedTuple):
    """The places of several trees as one tree, with the samples of each."""

    names: List[str]
    depth: List[int]
    name: List[int]
    own: List[List[int]]


def merged(groups: Sequence[Iterable[Tree]]) -> Merged:
    """Groups of trees as one tree, with the samples of each group; functions with one caller in the order of names."""
    numbers: Dict[str, int] = {}
    called: Dict[int, Dict[int, int]] = {}  # caller → function → place
    own: List[List[int]] = [[] for _group in groups]
    for group, trees in enumerate(groups):
        for tree in trees:
            above: List[int] = []
            for depth, name, samples in zip(tree.depth, tree.name, tree.own):
                del above[depth:]
                functions = called.setdefault(above[-1] if above else -1, {})
                place = functions.setdefault(numbers.setdefault(tree.names[name], len(numbers)), len(own[0]))
                if place == len(own[0]):
                    for column in own:
                        column.append(0)
                own[group][place] += samples
                above.append(place)
    names, order = list(numbers), []
    left = [(-1, -1, -1)]
    while left:
        place, depth, number = left.pop()
        order += [(place, depth, number)] if place >= 0 else []
        below = sorted(called.get(place, {}).items(), key=lambda entry: names[entry[0]], reverse=True)
        left += [(each, depth + 1, number) for number, each in below]
    columns = [[column[place] for place, _depth, _number in order] for column in own]
    return Merged(names, [row[1] for row in order], [row[2] for row in order], columns)


def as_tree(found: Merged) -> Tree:
    """Trees that were merged as one group."""
    return Tree(found.names, found.depth, found.name, found.own[0])
