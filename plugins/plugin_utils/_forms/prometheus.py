# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""report.prom: numbers and names for node_exporter's textfile collector. PRIVATE to the collection.

Labels hold host, type, class, workload, concern, knob, status, interface and allowance; never a value or a sentence.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timezone
from typing import Iterator, List, Tuple

from ...module_utils._agent.metrics.exposition import Labels, Sample, metric
from .._report import allowances, model
from .._report.model import HostReport, Report


def render(report: Report) -> str:
    """The text of report.prom, in the Prometheus text format 0.0.4."""
    lines: List[str] = []
    for name, text, samples in _metrics(report):
        lines += metric(name, "gauge", text, samples)
    return "\n".join(lines) + "\n"


def _metrics(report: Report) -> Iterator[Tuple[str, str, Iterator[Sample]]]:
    hosts = report.hosts
    limits = {host.name: allowances.verdicts(host.allowances) for host in hosts}
    ended = datetime.strptime(report.run.finished, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
    yield "nearmetal_report_timestamp_seconds", "When the run ended.", iter([((), ended.timestamp())])
    yield "nearmetal_report_duration_seconds", "How long the run took.", iter([((), report.run.seconds)])
    yield (
        "nearmetal_hosts",
        "Hosts of the run by state.",
        (((("state", state),), count) for state, count in report.states().items()),
    )
    yield (
        "nearmetal_host_reported",
        "1 when the host reported its findings, 0 when it should have and didn't.",
        (((("host", host.name),), int(host.state == model.REPORTED)) for host in hosts if host.state != model.SKIPPED),
    )
    yield (
        "nearmetal_host_info",
        "1 for each host, with its instance type, host class and workload.",
        ((_info(host), 1) for host in hosts if host.platform),
    )
    yield (
        "nearmetal_settings_to_change",
        "Settings that tune would change, without what only keeps them over a reboot.",
        (((("host", host.name),), _to_change(host)) for host in hosts if host.state == model.REPORTED),
    )
    yield (
        "nearmetal_reboot_required",
        "1 when a setting takes effect only at the next boot.",
        (
            ((("host", host.name),), int(host.reboot_required))
            for host in hosts
            if host.reboot_required or host.state == model.REPORTED
        ),
    )
    yield "nearmetal_findings", "Findings by knob and status.", _findings(report)
    yield (
        "nearmetal_failed_concerns",
        "Concerns that ended with an error.",
        (((("host", host.name),), len(host.errors)) for host in hosts if host.errors or host.state == model.REPORTED),
    )
    yield (
        "nearmetal_review_due",
        "1 when the day that kernel_check's review_after names has come.",
        (((("host", name),), int("advice" in statuses)) for name, statuses in _reviews(report) if statuses),
    )
    yield (
        "nearmetal_ena_allowance_exceeded_packets",
        "Packets over an EC2 limit between the last two samples.",
        (
            ((("host", name), ("interface", verdict["interface"]), ("allowance", counter)), events)
            for name, verdicts in limits.items()
            for verdict in verdicts
            for counter, events in verdict["deltas"].items()
        ),
    )
    yield (
        "nearmetal_ena_sample_seconds",
        "Time between the last two samples of the allowances.",
        (
            ((("host", name), ("interface", verdict["interface"])), verdict["seconds"])
            for name, verdicts in limits.items()
            for verdict in verdicts
        ),
    )
    yield from _proven(report)


def _info(host: HostReport) -> Labels:
    known = {"type": "instance_type", "class": "host_class", "architecture": "architecture"}
    labels = tuple((label, str(host.platform.get(key) or "")) for label, key in known.items())
    return (("host", host.name), *labels, ("workload", host.workload))


def _to_change(host: HostReport) -> int:
    return sum(finding.status == "would_change" and not finding.upkeep for finding in host.findings)


def _reviews(report: Report) -> Iterator[Tuple[str, List[str]]]:
    for host in report.hosts:
        findings = (finding for finding in host.findings if finding.concern == "kernel_check")
        yield host.name, [finding.status for finding in findings if finding.knob == "review_after"]


def _proven(report: Report) -> Iterator[Tuple[str, str, Iterator[Sample]]]:
    """The last verdict of prove; an interval that is open on one side has no line for it."""
    proofs = [(host.name, host.proven) for host in report.hosts if host.proven]
    yield (
        "nearmetal_prove_timestamp_seconds",
        "When the last run of prove ended.",
        (((("host", name),), proof["ended"]) for name, proof in proofs),
    )
    yield (
        "nearmetal_prove_verdict",
        "1 for the verdict of the last run of prove.",
        (((("host", name), ("verdict", proof["verdict"])), 1) for name, proof in proofs),
    )
    for field, words in (
        ("change", "Change of the primary metric in the last run of prove, in percent."),
        ("low", "Lower end of the interval of that change, in percent."),
        ("high", "Upper end of the interval of that change, in percent."),
        ("evidence", "Evidence for an effect, as a ratio to 1; 20 decides."),
    ):
        yield (
            f"nearmetal_prove_{field}{'' if field == 'evidence' else '_percent'}",
            words,
            (
                ((("host", name), ("metric", proof["metric"])), proof[field])
                for name, proof in proofs
                if proof[field] is not None
            ),
        )


def _findings(report: Report) -> Iterator[Sample]:
    for host in report.hosts:
        count = Counter((finding.concern, finding.knob, finding.status) for finding in host.findings)
        for (concern, knob, status), findings in sorted(count.items()):
            yield (("host", host.name), ("concern", concern), ("knob", knob), ("status", status)), findings
