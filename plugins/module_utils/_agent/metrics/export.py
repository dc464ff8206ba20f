# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit's export for node_exporter's textfile collector. PRIVATE to the collection."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ..._engine.session import PATIENCE
from ..._facts import ethtool
from ..._facts.ethtool import CONNTRACK_AVAILABLE
from ..._host import store
from ..._host.host import WritableHost
from ..._memory import metrics_file
from ..._memory.stored import StoredWanted
from ..._planning.unit import METRICS
from .. import report
from .exposition import Labels, Sample, metric


def export(host: WritableHost) -> None:
    """Write what the host knows of itself. Raises NearmetalError when the file can't be written."""
    text = render(report.collect(host), _allowances(host), time.time(), report.planned_at(host))
    # A restore that ran meanwhile has removed the file, and what is stored says so.
    with store.lock(host, PATIENCE, store.UNIT):
        directory = metrics_file.directory_of(StoredWanted(host).get(METRICS))
        if directory:
            metrics_file.write(host, directory, text)


def _allowances(host: WritableHost) -> Dict[str, Mapping[str, int]]:
    allowances = {name: ethtool.allowances(host, name) for name in host.names("/sys/class/net")}
    return {name: counters for name, counters in allowances.items() if counters}


def render(
    state: Mapping[str, Any], allowances: Mapping[str, Mapping[str, int]], exported: float, planned: Optional[float]
) -> str:
    """The text for what `nearmetal status` found, and for each interface's allowances."""
    lines: List[str] = []
    for subject, kind, words, samples in _metrics(state, allowances, exported, planned):
        lines += metric(f"nearmetal_unit_{subject}", kind, words, samples)
    return "\n".join(lines) + "\n"


def _metrics(
    state: Mapping[str, Any], allowances: Mapping[str, Mapping[str, int]], exported: float, planned: Optional[float]
) -> Iterator[Tuple[str, str, str, Sequence[Sample]]]:
    drift = Counter(map(_knob, state["drift"]))
    failed = {failure["concern"] for failure in state["failed"]}
    failed |= {concern["name"] for concern in state["concerns"] if concern["error"]}
    yield "export_timestamp_seconds", "gauge", "When this file was written.", [((), round(exported))]
    last = [((), round(planned))] if planned is not None else []
    yield "planned_timestamp_seconds", "gauge", "When the unit last planned since the boot.", last
    yield "drifted_settings", "gauge", "Settings that are no longer as wanted.", [((), len(state["drift"]))]
    yield "drift", "gauge", "Places at which a setting is no longer as wanted.", list(drift.items())
    waiting = [((), len(state["needs_reboot"]))]
    yield "waiting_for_reboot", "gauge", "Settings that take effect at the next boot.", waiting
    words = "Concerns that failed in their last run, or can't be planned."
    yield "failed_concerns", "gauge", words, [((), len(failed) + len(state["damaged"]))]
    exceeded = [
        ((("interface", name), ("allowance", counter)), value)
        for name, counters in allowances.items()
        for counter, value in counters.items()
        if counter != CONNTRACK_AVAILABLE
    ]
    words = "Packets over an EC2 limit since the driver was loaded."
    yield "ena_allowance_exceeded_total", "counter", words, exceeded
    free = [
        ((("interface", name),), counters[CONNTRACK_AVAILABLE])
        for name, counters in allowances.items()
        if CONNTRACK_AVAILABLE in counters
    ]
    yield "ena_conntrack_available", "gauge", "Connections that EC2 can still track.", free


def _knob(name: str) -> Labels:
    concern, _dot, knob = name.partition(".")
    return (("concern", concern), ("knob", knob))
