# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prometheus' text format 0.0.4, of what a host exports and of report.prom. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Iterable, List, Tuple

Labels = Tuple[Tuple[str, str], ...]
Sample = Tuple[Labels, float]


def metric(name: str, kind: str, words: str, samples: Iterable[Sample]) -> List[str]:
    """The lines of one metric; none without samples."""
    lines = [f"{name}{_labels(labels)} {value}" for labels, value in samples]
    return [f"# HELP {name} {words}", f"# TYPE {name} {kind}", *lines] if lines else []


def _labels(labels: Labels) -> str:
    joined = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{joined}}}" if joined else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
