# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which hosts are tuned in which batch: a coin that can be tossed again. Pure. PRIVATE to the collection.

Within a stratum each order of its hosts is as likely as any other, so that the hosts that wait are controls for those
that are tuned. Strata are dealt out evenly: each batch has about its share of each.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from ...module_utils._error import NearmetalError
from ...module_utils._words import shown

_SHARE = re.compile(r"(100|[1-9][0-9]?)%", re.ASCII)
_ALONE = "hosts that are alone in their stratum"


def draw(seed: int, strata: Mapping[str, str]) -> List[str]:
    """The hosts in the order in which they are tuned; `strata` gives each its stratum."""
    names = _merged(strata)
    members: Dict[str, List[str]] = {}
    for host in sorted(names, key=lambda host: (_coin(seed, "host", host), host)):
        members.setdefault(names[host], []).append(host)
    places: List[Tuple[float, str]] = []
    for name, hosts in members.items():
        offset = _coin(seed, "stratum", name)
        places += [((index + offset) / len(hosts), host) for index, host in enumerate(hosts)]
    return [host for _place, host in sorted(places)]


def strata_of(strata: Mapping[str, str], order: Sequence[str]) -> List[int]:
    """The number of each host's stratum."""
    merged = _merged(strata)
    numbers = {name: number for number, name in enumerate(sorted(set(merged.values())))}
    return [numbers[merged[host]] for host in order]


def _merged(strata: Mapping[str, str]) -> Dict[str, str]:
    """A host without any other like it is compared with the others of that kind."""
    sizes = Counter(strata.values())
    return {host: name if sizes[name] > 1 else _ALONE for host, name in strata.items()}


def _coin(seed: int, kind: str, name: str) -> float:
    digest = hashlib.sha256("\0".join(("nearmetal rollout", str(seed), kind, name)).encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def batch_ends(batches: Sequence[Any], hosts: int) -> List[int]:
    """How many hosts are tuned when each batch is over. Raises NearmetalError for what is no such number or share."""
    ends: List[int] = []
    largest = {"": 0, "%": 0}
    for given in batches:
        text = str(given).strip()
        share = _SHARE.fullmatch(text)
        if share is None and (isinstance(given, bool) or not re.fullmatch("[1-9][0-9]{0,8}", text, re.ASCII)):
            raise NearmetalError(
                f"rollout.batches: {shown(given)} is neither a number of hosts nor a share such as '10%': each entry"
                " says how many hosts are tuned when its batch is over"
            )
        end = hosts * int(share[1]) // 100 if share else int(text)
        size, sign = int(share[1]) if share else end, "%" if share else ""
        if size < largest[sign]:
            raise NearmetalError(
                f"rollout.batches must grow, as each entry says how many hosts are tuned when its batch is over:"
                f" {size}{sign} comes after {largest[sign]}{sign}"
            )
        largest[sign] = size
        ends.append(min(hosts, max(end, (ends[-1] if ends else 0) + 1)))
    if not ends:
        raise NearmetalError("rollout.batches is empty: give numbers of hosts or shares, such as [1, '10%', '100%']")
    return sorted(set(ends))


def watched(batch: int, waiting: int) -> int:
    """How many of the hosts that wait are watched with a batch: with more of them little more would be seen."""
    return min(waiting, max(100, min(1000, 3 * batch)))
