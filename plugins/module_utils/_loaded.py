# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of which each is loaded on first use: to load all costs a small host milliseconds. PRIVATE."""

from __future__ import annotations

from typing import Callable, Collection, Iterator, Mapping, TypeVar

Item = TypeVar("Item")


class Loaded(Mapping[str, Item]):
    """Name → what `load` returns for it."""

    def __init__(self, names: Collection[str], load: Callable[[str], Item]) -> None:
        self._names, self._load = names, load

    def __getitem__(self, name: str) -> Item:
        if name not in self._names:
            raise KeyError(name)
        return self._load(name)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
