# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of a rollout, checked before anything is drawn. PRIVATE to the collection."""

from __future__ import annotations

import os
import time
from typing import Any, Dict, Mapping

from ...module_utils._error import NearmetalError
from ...module_utils._mistakes import Mistakes
from ...module_utils._planning.options import Spec, validate
from . import cloudwatch, draw, guards, metrics, permission, prometheus
from .decision import GO_ON, HOLD

STEPS = ("begin", "open", "look", "permit", "claim", "watch", "decide", "release", "end")
OPTIONS: Spec = {
    "batches": {"type": "list", "elements": "str", "default": ["1", "10%", "30%", "100%"]},
    "metrics": {"type": "list", "elements": "dict", "default": []},
    "margin": {**metrics.METRIC["margin"], "default": 5.0},
    "prometheus": {"type": "dict", "default": {}},
    "cloudwatch": {"type": "dict", "default": {}},
    "guards": {"type": "dict", "default": {}},
    "health": {"type": "str", "default": "", "lines": True},
    "before": {"type": "float", "default": 600.0, "range": (0, 86400)},
    "watch": {"type": "float", "default": 600.0, "range": (0, 604800)},
    "watch_at_most": {"type": "float", "default": 1800.0, "range": (0, 604800)},
    "interval": {"type": "float", "default": 60.0, "range": (0.1, 3600)},
    "on_unclear": {"type": "str", "choices": [HOLD, GO_ON], "default": HOLD},
    "on_back": {"type": "str", "choices": ["batch", "all"], "default": "batch"},
    "seed": {"type": "int"},
    "resume": {"type": "str", "default": ""},
    "prove_first": {"type": "bool", "default": False},
    "lease": {"type": "float", "default": 86400.0, "range": (0, 2592000)},
    **permission.PERMISSION,
    "step": {"type": "str", "choices": list(STEPS), "default": "begin"},
    "record": {"type": "str", "default": ""},
}
# The others are part of what is drawn, or are of one step.
IN_RECORD = tuple(name for name in OPTIONS if name not in ("margin", "on_unclear", "seed", "resume", "step", "record"))


def validated(given: Mapping[str, Any]) -> Dict[str, Any]:
    """The options, checked. Raises NearmetalError, which names all mistakes."""
    mistakes, options = Mistakes(), validate("rollout", OPTIONS, {})
    for name in given:
        with mistakes:
            options.update(_given(name, given[name]))
    with mistakes:
        options["metrics"] = metrics.validated(options["metrics"], options["margin"])
        _validate_servers(options)
    with mistakes:
        options["guards"] = guards.limits_of(options["guards"])
    options["freeze"] = os.path.abspath(os.path.expanduser(options["freeze"])) if options["freeze"] else ""
    mistakes.of(permission.outside, options["window"], time.time())
    mistakes.of(permission.unavailable, options["most_unavailable"], {}, ())
    mistakes.of(draw.batch_ends, options["batches"], 1)
    mistakes.require_none()
    return options


def _validate_servers(options: Dict[str, Any]) -> None:
    if any("prometheus" in metric for metric in options["metrics"]):
        options["prometheus"] = validate("rollout.prometheus", prometheus.PROMETHEUS, options["prometheus"])
    if any("cloudwatch" in metric for metric in options["metrics"]):
        options["cloudwatch"] = validate("rollout.cloudwatch", cloudwatch.CLOUDWATCH, options["cloudwatch"])
        for number, metric in enumerate(options["metrics"]):
            if "cloudwatch" in metric:
                name = f"{metrics.called(number, metric)}: cloudwatch"
                metric["cloudwatch"] = validate(name, cloudwatch.METRIC, metric["cloudwatch"])
        if options["interval"] % cloudwatch.PERIOD:
            raise NearmetalError("rollout.interval is whole minutes with metrics of CloudWatch, such as 300")


def _given(name: str, value: Any) -> Dict[str, Any]:
    return {key: checked for key, checked in validate("rollout", OPTIONS, {name: value}).items() if key == name}
