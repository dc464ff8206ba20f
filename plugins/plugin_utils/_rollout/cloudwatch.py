# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The figures of a fleet from CloudWatch, by as few calls of GetMetricData as it allows. PRIVATE to the collection."""

from __future__ import annotations

import json
import math
from datetime import datetime, timezone
from functools import lru_cache
from typing import Any, Dict, Mapping, Sequence, Tuple

from ...module_utils._cloud.accounts import Target, targets
from ...module_utils._cloud.api import METRICS, metric_values, parts, stat
from ...module_utils._cloud.argspec import aws_options
from ...module_utils._error import NearmetalError
from ...module_utils._planning.options import Spec
from .metrics import Place, Values, filled

CLOUDWATCH: Spec = {**aws_options(), "delay": {"type": "float", "default": 180.0}}
METRIC: Spec = {
    "namespace": {"type": "str", "required": True},
    "metric": {"type": "str", "required": True},
    "dimensions": {"type": "dict", "required": True},
    "statistic": {"type": "str", "default": "Average"},
}
PERIOD = 60  # seconds of a value; of a shorter period CloudWatch keeps values that were sent so


def ask(
    server: Mapping[str, Any], wanted: Mapping[str, Mapping[str, Any]], places: Sequence[Place], start: float
) -> Dict[str, Values]:
    """Of each metric the mean of each host's values in the whole minutes from `start` on, of the seconds of `server`.

    A host is asked for in one account and region after the other until it has a value. Raises NearmetalError.
    """
    begin = PERIOD * math.ceil(start / PERIOD)
    ends = (datetime.fromtimestamp(when, timezone.utc) for when in (begin, begin + server["seconds"]))
    period = dict(zip(("StartTime", "EndTime"), ends))
    found: Dict[str, Values] = {name: {} for name in wanted}
    for target in _targets(json.dumps({name: server.get(name) for name in aws_options()})):
        queries = [
            (name, place.host, stat(metric["namespace"], metric["metric"], dimensions, PERIOD, metric["statistic"]))
            for name, metric in wanted.items()
            for place in places
            for dimensions in [{str(key): filled(str(value), place) for key, value in metric["dimensions"].items()}]
            # A host that lacks what a dimension names it by isn't asked for.
            if place.host not in found[name] and all(dimensions.values())
        ]
        for part in parts(queries, METRICS):
            values, error = metric_values(target, [series for _name, _host, series in part], period)
            if error:
                raise NearmetalError(error[1])
            for number, of_host in values.items():
                name, host, _series = part[number]
                if of_host:
                    found[name][host] = sum(of_host) / len(of_host)
    return found


@lru_cache(maxsize=1)
def _targets(options: str) -> Tuple[Target, ...]:
    """The accounts and regions, which keep their sessions from look to look."""
    found, failed = targets(json.loads(options))
    if not found:
        raise NearmetalError("; ".join(failed))
    return tuple(found)
