# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module `benchmark`, and a benchmark as the load of `prove`. PRIVATE to the collection."""

from __future__ import annotations

import hashlib
import time
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

from ..._error import NearmetalError
from ..._facts import imds, platform
from ..._host.host import WritableHost
from ..._planning.options import Spec
from ..._tasks.task import Task
from ..._words import in_words, sentence
from ..tools.benchmark import Result
from ..tools.registry import BENCHMARKS, named, options_of
from .load import Ran, is_awaited
from .measure import measure, require, require_tools

OPTIONS: Spec = {
    "name": {"type": "str", "choices": list(BENCHMARKS)},
    "options": {"type": "dict", "default": {}},
    "load_on": {"type": "list", "elements": "str", "default": []},
    "start_at": {"type": "float", "default": 0.0},
}
LONGEST_START = 60.0  # seconds for which a client waits for the others, by its own clock
_LONGEST_DETAIL = 160
_NO_UNIT = "index"  # of UnixBench: a number against its old reference, which the names say


def forecast(host: WritableHost, options: Mapping[str, Any]) -> Dict[str, Any]:
    """What the module would do: its result in check mode. Raises NearmetalError."""
    name, chosen = _chosen(host, options)
    require(host, name, chosen)
    require_tools(host, BENCHMARKS[name], chosen)
    return {"changed": False, "msg": f"{name}: would run; nothing is measured in check mode"}


def do(host: WritableHost, options: Mapping[str, Any]) -> Dict[str, Any]:
    """The result of the module. Raises NearmetalError."""
    name, chosen = _chosen(host, options)
    wait_for(options["start_at"])
    measured = measure(host, name, chosen, is_awaited)
    return {
        "changed": False,
        "msg": summary(name, measured.result),
        "histograms": dict(measured.result.histograms),
        "span": measured.result.span,
        "metrics": [metric._asdict() for metric in measured.result.metrics],
        "details": dict(measured.result.details),
        "versions": dict(measured.versions),
        "commands": list(measured.commands),
        "used": measured.used._asdict(),
        "seconds": measured.seconds,
        "platform": _platform(host),
    }


def _chosen(host: WritableHost, options: Mapping[str, Any]) -> Tuple[str, Dict[str, Any]]:
    """The benchmark, and its own options."""
    name = options.get("name")
    if name is None:
        raise NearmetalError(f"benchmark.name is required; choose one of {', '.join(BENCHMARKS)}")
    chosen = options_of(name, options["options"])
    if not host.is_root():
        raise NearmetalError("a benchmark needs root on the host: set become: true, become_user: root")
    return name, chosen


def wait_for(moment: float) -> None:
    """Wait until all clients begin, in seconds since 1970; not at all if this host's clock is far from the others'."""
    ahead = moment - time.time()
    if 0 < ahead < LONGEST_START:
        time.sleep(ahead)


def _platform(host: WritableHost) -> Dict[str, Optional[str]]:
    """What a baseline is filed under; the instance by a digest, because its id belongs in no report."""
    known = platform.observe(host)
    kind = known.instance_type
    if kind is None and host.metadata_service is not None:
        kind = imds.instance_type(known, host.metadata_service)
    digest = hashlib.sha256((known.instance_id or "").encode()).hexdigest()[:12]
    return {
        "instance_type": kind,
        "instance": digest if known.instance_id else None,
        "host_class": known.host_class,
        "kernel": known.kernel,
    }


def run_load(host: WritableHost, load: str, goes_on: Callable[[], bool]) -> Ran:
    """One run of the benchmark that a load of prove names, as if a command had printed its figures."""
    try:
        measured = measure(host, *named(load), goes_on)
    except NearmetalError as error:
        return Ran(1, "", sentence(str(error)), 0.0, "")
    lines = (f"{metric.name} {metric.value!r} {metric.unit} {metric.better}\n" for metric in measured.result.metrics)
    versions = ", ".join(f"{tool} {version}" for tool, version in measured.versions.items())
    result = measured.result
    return Ran(0, "".join(lines), "", measured.seconds, "", versions, result.histograms, result.span)


def summary(name: str, result: Result) -> str:
    """One line with the figures of a run."""
    figures = ", ".join(
        f"{metric.name} {metric.value:.6g}" + (f" {metric.unit}" if metric.unit != _NO_UNIT else "")
        for metric in result.metrics
    )
    figures = figures or "measured; the client has the figures"
    details = ", ".join(
        f"{detail} {in_words(value, 'unknown', _LONGEST_DETAIL)}"
        for detail, value in result.details.items()
        if not (isinstance(value, dict) or (isinstance(value, list) and any(isinstance(each, dict) for each in value)))
    )
    return sentence(f"{name}: {figures}{f' ({details})' if details else ''}")


TASKS = {"benchmark": Task(OPTIONS, do, forecast)}
