# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The levers, by name. PRIVATE to the collection."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Dict, Iterator, List, Mapping

from .._error import NearmetalError
from .._host.host import WritableHost
from .._words import shown
from .base import Key, Lever

# The first part of a lever's name → the modules with such LEVERS. Families that are looked up by path come first.
_FAMILIES = {
    "clock": ("sys_files",),
    "smt": ("smt",),
    "power": ("power", "sys_files"),
    "hugepages": ("hugepages", "sys_files"),
    "memory": ("sys_files",),
    "block": ("block",),
    "boot": ("boot_arguments.lever",),
    "files": ("files",),
    "irqbalance": ("irqbalance",),
    "network": ("network", "nic_settings"),
    "routes": ("routing",),
    "sysctl": ("sys_files",),
    "unit": ("unit",),
}


@lru_cache(maxsize=None)
def _family(name: str) -> Dict[str, Lever]:
    """The levers of a family, loaded when the first of them is needed, because loading costs milliseconds."""
    modules = [import_module(f"{__package__}.{module}") for module in _FAMILIES.get(name, ())]
    levers: List[Lever] = [lever for module in modules for lever in module.LEVERS]
    return {lever.what: lever for lever in levers if lever.what.partition(".")[0] == name}


class _Levers(Mapping[str, Lever]):
    """Name → lever."""

    def __getitem__(self, what: str) -> Lever:
        return _family(what.partition(".")[0])[what]

    def __iter__(self) -> Iterator[str]:
        return (what for family in _FAMILIES for what in _family(family))

    def __len__(self) -> int:
        return sum(1 for _what in self)


LEVERS: Mapping[str, Lever] = _Levers()


def lever_of(what: str) -> Lever:
    """The lever of that name. Raises NearmetalError when there is none."""
    try:
        return LEVERS[what]
    except KeyError:
        raise NearmetalError(f"nearmetal has no lever {shown(what)}") from None


def place_of(host: WritableHost, key: Key) -> Lever:
    """The lever that acts there, bound to the host. Raises NearmetalError when there is none of that name."""
    return lever_of(key[0]).at(host, key[1])
