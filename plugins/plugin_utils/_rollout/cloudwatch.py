# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The figures of a fleet from CloudWatch, by as few calls of GetMetricData as it allows. PRIVATE to the collection."""

from __future__ import annotations

import json
import math
from datetime import datetime, timezone
from functools import lru_cache
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from ...module_utils._cloud.accounts import Target, targets
from ...module_utils._cloud.api import METRICS, pages, parts
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
    ends = [datetime.fromtimestamp(when, timezone.utc) for when in (begin, begin + server["seconds"])]
    found: Dict[str, Values] = {name: {} for name in wanted}
    where = _targets(json.dumps({name: server.get(name) for name in aws_options()}))
    for target in where:
        queries = [
            (name, place.host, stat)
            for name, metric in wanted.items()
            for place in places
            for stat in _stats(metric, place)
            if place.host not in found[name]
        ]
        for part in parts(queries, METRICS):
            request = {
                "StartTime": ends[0],
                "EndTime": ends[1],
                "MetricDataQueries": [
                    {"Id": f"m{n}", "MetricStat": stat} for n, (_name, _host, stat) in enumerate(part)
                ],
            }
            results, error = pages(target, "cloudwatch", "get_metric_data", "MetricDataResults", request)
            if error:
                raise NearmetalError(error[1])
            values: Dict[int, List[float]] = {}
            for result in results:  # a metric may go on on the next page
                values.setdefault(int(result["Id"][1:]), []).extend(result["Values"])
            for number, of_host in values.items():
                if of_host:
                    found[part[number][0]][part[number][1]] = sum(of_host) / len(of_host)
    return found


def _stats(metric: Mapping[str, Any], place: Place) -> List[Dict[str, Any]]:
    """What to ask for; nothing of a host that lacks what a dimension names it by."""
    dimensions = [
        {"Name": str(name), "Value": filled(str(value), place)} for name, value in metric["dimensions"].items()
    ]
    if not all(dimension["Value"] for dimension in dimensions):
        return []
    named = {"Namespace": metric["namespace"], "MetricName": metric["metric"], "Dimensions": dimensions}
    return [{"Metric": named, "Period": PERIOD, "Stat": metric["statistic"]}]


@lru_cache(maxsize=1)
def _targets(options: str) -> Tuple[Target, ...]:
    """The accounts and regions, which keep their sessions from look to look."""
    found, failed = targets(json.loads(options))
    if not found:
        raise NearmetalError("; ".join(failed))
    return tuple(found)
