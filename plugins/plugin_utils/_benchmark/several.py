# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runs of several clients as one load. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Sequence

from ...module_utils._benchmark.host.benchmarking import summary
from ...module_utils._benchmark.tools import histogram
from ...module_utils._benchmark.tools.benchmark import Result
from ...module_utils._error import NearmetalError
from ...module_utils._prove.statistics.metrics import SMALLER
from ...module_utils._prove.statistics.record_lines import metrics_from

_EACH = ("metrics", "details", "versions", "commands", "used", "seconds", "platform")


def failed(answer: Mapping[str, Any]) -> bool:
    """Whether a client could not measure."""
    return bool(answer.get("failed") or answer.get("unreachable"))


def merged(name: str, clients: Sequence[str], answers: Sequence[Mapping[str, Any]]) -> Dict[str, Any]:
    """The result of the load; of one client it is that of its run. Raises NearmetalError that names a client."""
    for client, answer in zip(clients, answers):
        if failed(answer):
            raise NearmetalError(f"the load failed on {client}: {answer.get('msg') or 'no message'}")
    if not any("metrics" in answer for answer in answers):
        return dict(answers[0])  # in check mode nothing is measured
    try:
        figures = [metrics_from(answer["metrics"]) for answer in answers]
    except (NearmetalError, KeyError) as error:
        raise NearmetalError(f"a client's figures can't be read: {error}") from None
    histograms, spans = ([answer.get(name) for answer in answers] for name in ("histograms", "span"))
    total, together = histogram.added(clients, figures, histograms, spans)
    details = {**dict(answers[0].get("details") or {}), **histogram.details(together, total)}
    if len(clients) > 1:
        shared = [name for prefix, counts in together.items() for name in histogram.times(prefix, counts)]
        worst = [metric.name for metric in total if metric.better == SMALLER and metric.name not in shared]
        details.update({"clients": len(clients), **({"of_the_worst_client": worst} if worst else {})})
    runs = {client: {key: answer.get(key) for key in _EACH} for client, answer in zip(clients, answers)}
    result = {
        **answers[0],
        "metrics": [metric._asdict() for metric in total],
        "details": details,
        "histograms": together,
        "clients": runs,
    }
    return {**result, "msg": summary(name, Result(total, details))}
