# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The offline table of instance types: answers of DescribeInstanceTypes, for runs without IAM permissions.

`python -m dev.tables.types` writes data.py, with the types that the API no longer lists. PRIVATE to the collection.
"""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import asdict, fields
from itertools import accumulate
from typing import Any, Dict, Iterable, List, Mapping

from .data import DATA
from .facts import CardFacts, TypeFacts


def pack(types: Iterable[TypeFacts]) -> bytes:
    """The table as compressed columns: equal values are stored once, and each row says how far its value is away.

    It counts from the value of the row before, because neighbors have much in common.
    """
    rows = [asdict(kind) for kind in sorted(types, key=lambda kind: kind.instance_type)]
    columns = []
    for name in (field.name for field in fields(TypeFacts)):
        cells = [json.dumps(row[name], separators=(",", ":")) for row in rows]
        distinct = list(dict.fromkeys(cells))
        place = {cell: index for index, cell in enumerate(distinct)}
        steps = [place[cell] - place[before] for before, cell in zip([*cells[:1], *cells], cells)]
        columns.append([name, [json.loads(cell) for cell in distinct], steps])
    return zlib.compress(json.dumps(columns, separators=(",", ":")).encode(), 9)


def unpack(packed: bytes) -> Dict[str, TypeFacts]:
    """The inverse of `pack`, by name."""
    columns: Dict[str, List[Any]] = {}
    for name, values, steps in json.loads(zlib.decompress(packed)):
        columns[name] = [values[index] for index in accumulate(steps)]
    columns["cards"] = [tuple(CardFacts(**card) for card in cards) for cards in columns["cards"]]
    types: Dict[str, TypeFacts] = {}
    for cells in zip(*columns.values()):
        row: Dict[str, Any] = {
            name: tuple(cell) if isinstance(cell, list) else cell for name, cell in zip(columns, cells)
        }
        types[row["instance_type"]] = TypeFacts(**row)
    return types


_read: Dict[str, TypeFacts] = {}


def offline_types() -> Mapping[str, TypeFacts]:
    """Every type of the table, by name."""
    if not _read:
        _read.update(unpack(base64.b85decode("".join(DATA))))
    return _read
