# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host knows of itself, as metrics. Pure. PRIVATE to the collection.

Labels hold concern, knob, interface and allowance; never a value or a sentence.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Iterator, List, Mapping, Optional, Sequence, Tuple

from ..._facts.ethtool import CONNTRACK_AVAILABLE
from .exposition import Labels, Sample, metric


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
