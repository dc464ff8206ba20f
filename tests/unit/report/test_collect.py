# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The content of a report: merged per host, compared with an earlier one, in numbers for Prometheus."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.kernel_check.pressure import KNOBS as PRESSURE
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.result import contract
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.session import Outcome
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import STATUSES, Action, Finding, Plan
from ansible_collections.nearmetal.ec2.plugins.modules import tune
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._ansible import results
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._forms import html, markdown, prometheus, terminal
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report import document, drift
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report.collect import Collector
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report.model import Report
from prometheus_client.parser import text_string_to_metric_families

from tests.support.fake_kernel import FakeKernel
from tests.support.files.counters import NETSTAT, SNMP, network_devices
from tests.support.files.processes import first, process, together
from tests.support.fleet import GOOD_CLOCK, ROOT, SLOW_CLOCK, finding, result_with
from tests.support.hosts import files_of
from tests.support.report import reports

Call = Callable[..., Dict[str, Any]]


def test_a_later_result_replaces_only_the_findings_of_its_concerns() -> None:
    collected = Collector()
    collected.add("h1", result_with(SLOW_CLOCK, finding("numa", "ok")))
    collected.add("h1", result_with(GOOD_CLOCK, finding("smt", "ok")))
    (host,) = collected.report(reports.RUN).hosts
    assert sorted((finding.concern, finding.status) for finding in host.findings) == [
        ("clocksource", "ok"),
        ("numa", "ok"),
        ("smt", "ok"),
    ]


def test_every_status_of_a_finding_has_a_style() -> None:
    result = result_with(*[finding("numa", status, knob=f"knob{number}") for number, status in enumerate(STATUSES)])
    totals = document.document(reports.report(result))["totals"]["findings"]
    assert totals == dict.fromkeys(reversed(totals), 1)
    assert set(totals) == set(STATUSES)


def test_a_report_accepts_what_the_engine_returns() -> None:
    plan = Plan(
        (Action("numa", "balancing", "sysctl", 1, 0, "why", "AWS, 2017"),),
        (Finding("numa", "balancing", "would_change", "why", now=1, wanted=0, gain="much"),),
    )
    result = contract([Outcome("numa", plan)])
    assert results.follows_contract(result)
    (host,) = reports.report(json.loads(json.dumps(result))).hosts
    assert host.findings[0].gain == "much"
    assert host.actions[0]["after"] == 0
    assert host.notes == ()


def test_a_report_keeps_the_map_of_queues_in_its_form() -> None:
    served = {"cpus": "4", "nodes": "2", "rps": "5,13", "xps": "0-7"}
    nic = {"name": "ens3", "place": "0000:00:03.0", "node": 2, "queues": [{"queue": 0, "now": served, "wanted": None}]}
    collected = Collector()
    collected.add(
        "h0", result_with(finding("network_irq", "ok"), queue_map=[{**nic, "mac": "02:00"}, "junk", {"queues": 7}])
    )
    collected.add("h0", result_with(GOOD_CLOCK))
    (host,) = document.document(collected.report(reports.RUN))["hosts"]
    assert host["queue_map"] == (nic, {"name": "", "place": "", "node": None, "queues": []})


def test_every_form_of_a_report_shows_the_arithmetic_of_sizing() -> None:
    lines = ["vCPUs 14 of 36 = 38.9 %", "<b>1.68</b> per hour"]
    result = result_with(finding("sizing", "advice", "bigger_size"), sizing={"arithmetic": [*lines, "bell\a"]})
    made = reports.report(result)
    (host,) = document.document(made)["hosts"]
    assert host["sizing"] == (*lines, "bell")
    assert "### Sizing\n\n- vCPUs 14 of 36 \\= 38.9 &#37;\n- \\<b\\>1.68" in markdown.render(made)
    page = html.render(made)
    assert "\\u003cb\\u003e1.68\\u003c/b\\u003e per hour" in page
    assert "<b>1.68" not in page
    shown = terminal.render(made)
    assert shown[shown.index("Sizing") + 1] == "- vCPUs 14 of 36 = 38.9 %"


def test_a_report_without_sizing_has_no_such_section() -> None:
    made = reports.report(result_with(GOOD_CLOCK, sizing={"arithmetic": "no list"}))
    assert "Sizing" not in markdown.render(made)
    assert "Sizing" not in terminal.render(made)


def test_the_nine_headings_are_those_of_the_talk() -> None:
    headings = document.document(reports.report(result_with(GOOD_CLOCK, finding("future", "ok"))))["headings"]
    assert [heading["number"] for heading in headings] == list(range(1, 11))
    assert headings[1]["concerns"] == ["clocksource"]
    assert headings[9] == {"number": 10, "title": "Other", "concerns": ["future"]}


def test_every_concern_of_the_collection_has_a_heading() -> None:
    roles = {path.name for path in (ROOT / "roles").iterdir()} - {
        "audit",
        "benchmark",
        "profile",
        "restore",
        "rollout",
        "tune",
    }
    headings = document.document(reports.report(result_with(*[finding(role, "ok") for role in roles])))["headings"]
    assert headings[9]["concerns"] == []


def test_a_heading_without_a_concern_is_called_not_audited() -> None:
    report = reports.report(result_with(GOOD_CLOCK, finding("numa", "ok"), finding("ebs", "ok"), platform={}))
    missing = "; ".join(
        (
            "Newest generation, HVM",
            "C\\-states and P\\-states",
            "CPU credits",
            "Operating system and kernel",
            "Enhanced networking",
            "Profile your application",
        )
    )
    assert f"\nNot audited: {missing}.\n" in markdown.render(report)
    assert html.render(report).count("not audited") == 6


# --- drift ---


def changes(before: Dict[str, Any], after: Dict[str, Any], mode: str = "audit") -> List[Dict[str, str]]:
    old, new = reports.report(before), reports.report(after)
    found: List[Dict[str, str]] = drift.compare("then", old.hosts, new.hosts, mode)["changes"]
    return found


def test_no_drift() -> None:
    assert changes(result_with(GOOD_CLOCK), result_with(GOOD_CLOCK)) == []


@pytest.mark.parametrize(("kind", "knob"), [("xen_hvm", "clocksource.source"), ("nitro_big", "smt.threads")])
def test_values_that_a_run_set_are_no_drift_in_the_next_audit(tmp_path: Path, call: Call, kind: str, knob: str) -> None:
    host = FakeKernel(tmp_path, files_of(kind))
    untouched, tuned = call(tune.main, host, check=True, workload="hpc"), call(tune.main, host, workload="hpc")
    assert knob in {
        f"{finding['concern']}.{finding['knob']}" for finding in tuned["findings"] if finding["status"] == "changed"
    }
    assert changes(tuned, call(tune.main, host, check=True, workload="hpc")) == []
    (drifted,) = [change for change in changes(untouched, tuned, "tune") if change["what"] == knob]
    assert drifted["after"] in ("tsc (ok)", "disabled (ok)")
    assert knob in {change["what"] for change in changes(tuned, untouched)}  # somebody put it back


def test_a_measured_value_drifts_when_its_status_does(tmp_path: Path, call: Call) -> None:
    results = []
    for stolen in (1100, 2300, 90000):
        times = {
            "/proc/stat": f"cpu  100000 0 100000 800000 0 0 0 {stolen} 0 0\n",
            "/proc/vmstat": f"compact_stall {stolen // 100}\npswpin 0\n",
        }
        host = FakeKernel(tmp_path / str(stolen), files_of("nitro", times))
        results.append(call(tune.main, host, check=True, workload="base"))
    assert {finding["now"] for result in results for finding in result["findings"] if finding["knob"] == "steal"} == {
        "0.1 %",
        "0.2 %",
        "8.2 %",
    }
    assert changes(results[0], results[1]) == []
    (lost, gained) = changes(results[1], results[2])
    assert (lost["what"], lost["before"]) == ("kernel_check.steal", "0.2 % (ok)")
    assert "EC2 oversubscribes CPUs only on T types" in gained["after"]


@pytest.mark.parametrize("many", [1, 50_000])
def test_counters_that_grew_are_no_drift_while_their_statuses_stay(tmp_path: Path, call: Call, many: int) -> None:
    results = []
    for day in (1, 2, 3):
        softnet = (100_000_000 + day, day * many, day * 7 * many, *(0,) * 6)
        times = {
            "/proc/net/softnet_stat": " ".join(f"{count:08x}" for count in softnet) + "\n",
            "/proc/net/dev": network_devices({"lo": 5000, "ens5": 10_000_000 + 1000 * day}),
            "/proc/net/netstat": NETSTAT.replace(": 0 0 0", f": 0 {day * many} {day * many}"),
            "/proc/net/snmp": SNMP.replace("20000", f"{2_000_000 * day + day**3}"),
            "/proc/stat": f"cpu  100000 0 100000 800000 0 0 0 {(100 + day) * many} 0 0\n",
            "/proc/vmstat": f"compact_stall {7 * day * many}\npswpin {9 * day * many}\n",
            "/proc/swaps": "Filename Type Size Used Priority\n/dev/nvme0n1p2 partition 8 0 -2\n",
            "/proc/sys/fs/file-nr": f"{1600 + 100 * day}\t0\t3000\n",
        }
        host = FakeKernel(tmp_path / str(day), files_of("nitro", times))
        results.append(call(tune.main, host, check=True, workload="base"))
    shown = [[finding["now"] for finding in result["findings"]] for result in results]
    assert sum(first != second for first, second in zip(shown[0], shown[1])) >= 5
    assert changes(results[0], results[1]) == changes(results[1], results[2]) == []
    assert {knob.name for knob in PRESSURE} <= set(drift._COUNTED["kernel_check"])


def test_counted_advice_is_no_drift_while_it_stays() -> None:
    was, hot = (
        finding("network_irq", "advice", "irq_hotspot", reason=f"CPU 3 spent {share} % of its time", where="cpu3")
        for share in (41, 42)
    )
    assert changes(result_with(was), result_with(hot)) == []
    (gained,) = changes(
        result_with(finding("network_irq", "ok", "affinity")),
        result_with(was, finding("network_irq", "ok", "affinity")),
    )
    assert gained["after"] == "CPU 3 spent 41 % of its time"


def test_another_workload_is_drift_and_another_count_of_processes_is_not(tmp_path: Path, call: Call) -> None:
    results = []
    for number, names in enumerate((["java"], ["java", "sh"], ["postgres"], ["postgres", "postgres"])):
        processes = [process(70 + pid, name, f"/usr/bin/{name}") for pid, name in enumerate(names)]
        host = FakeKernel(tmp_path / str(number), files_of("nitro", together(first(), *processes)))
        results.append(call(tune.main, host, check=True, workload="auto"))
    assert changes(results[0], results[1]) == []
    assert changes(results[2], results[3]) == []
    found = changes(results[1], results[2])
    assert [(change["what"], change["before"], change["after"]) for change in found] == [
        ("tune advice", "base", "–"),
        ("tune advice", "–", "nvme_storage"),
    ]


def test_a_value_that_changed() -> None:
    assert changes(result_with(GOOD_CLOCK), result_with({**SLOW_CLOCK, "owner": "tuned"})) == [
        {
            "host": "h0",
            "concern": "clocksource",
            "what": "clocksource.source",
            "before": "tsc (ok)",
            "after": "xen (would change)",
            "owner": "tuned",
        }
    ]


def test_values_that_this_run_set_are_owned_by_nearmetal() -> None:
    (change,) = changes(result_with(SLOW_CLOCK), result_with({**SLOW_CLOCK, "status": "changed"}), "tune")
    assert change["after"] == "tsc (ok)"
    assert change["owner"] == "nearmetal.ec2"


def test_a_device_that_was_added() -> None:
    new = finding("network_irq", "ok", "affinity", where="ens6")
    old = finding("network_irq", "ok", "affinity", where="ens5")
    assert [change["what"] for change in changes(result_with(old), result_with(old, new))] == [
        "network_irq.affinity ens6"
    ]


def test_a_concern_that_only_one_run_asked_about_is_no_drift() -> None:
    assert changes(result_with(GOOD_CLOCK), result_with(GOOD_CLOCK, finding("numa", "refused"))) == []


def test_a_host_that_was_resized() -> None:
    bigger = {**result_with(GOOD_CLOCK)["platform"], "instance_type": "m4.10xlarge"}
    (change,) = changes(result_with(GOOD_CLOCK), result_with(GOOD_CLOCK, platform=bigger))
    assert (change["what"], change["before"], change["after"]) == ("instance_type", "m4.large", "m4.10xlarge")


def test_hosts_that_were_added_and_removed() -> None:
    both, single = (
        reports.report(result_with(GOOD_CLOCK), result_with(GOOD_CLOCK)),
        reports.report(result_with(GOOD_CLOCK)),
    )
    (added,) = drift.compare("then", single.hosts, both.hosts, "audit")["changes"]
    assert (added["host"], added["before"], added["after"]) == ("h1", "not in the play", "reported")
    assert drift.compare("then", both.hosts, single.hosts, "audit") == {
        "since": "then",
        "changes": [],
        "absent": ["h1"],
    }


def test_hosts_that_a_limit_left_out_are_one_line() -> None:
    earlier = ("2026-01-30T00:00:00Z", reports.report(*[result_with(GOOD_CLOCK)] * 500).hosts)
    limited = reports.report(result_with(GOOD_CLOCK), earlier=earlier)
    sentence = "499 hosts of that report are not in this play: h1, h10, h100 and 496 more"
    assert f"  {sentence}" in terminal.render(limited, 100)
    assert sentence in markdown.render(limited)
    assert sentence in html.render(limited)


def test_advice_that_is_new() -> None:
    advice = finding("clocksource", "advice", reason="4 sockets")
    (change,) = changes(result_with(GOOD_CLOCK), result_with(GOOD_CLOCK, advice))
    assert change["after"] == "4 sockets"


def test_an_earlier_report_is_read_back_as_it_was(tmp_path: Path) -> None:
    report = reports.fleet(20)
    (tmp_path / "report.json").write_text(document.dump(report))
    since, hosts = document.load(str(tmp_path / "report.json"))
    assert since == report.run.finished
    assert drift.compare(since, hosts, report.hosts, "audit")["changes"] == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[1]",
        b"{}",
        b'{"version": 2}',
        b'{"version": 1}',
        b'{"version": 1, "run": {}, "hosts": []}',
        b'{"version": 1, "run": {"finished": ""}, "hosts": [{}]}',
        b'{"version": 1, "run": {"finished": ""}, "hosts": [[]]}',
        b'{"version": 1, "run": {"finished": ""}, "hosts": {"a": 1}}',
        b"[" * 100_000,
    ],
)
def test_an_earlier_report_of_another_form(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.json"
    path.write_bytes(content)
    with pytest.raises(NearmetalError, match=r"^audit_baseline: .*other\.json"):
        document.load(str(path))


def test_an_earlier_report_that_is_absent(tmp_path: Path) -> None:
    with pytest.raises(NearmetalError, match="No such file"):
        document.load(str(tmp_path / "absent.json"))


# --- Prometheus ---


def metrics(report: Report) -> Dict[str, Dict[Any, float]]:
    return {
        family.name: {tuple(sample.labels.values()): sample.value for sample in family.samples}
        for family in text_string_to_metric_families(prometheus.render(report))
    }


def test_numbers_for_prometheus() -> None:
    collected = Collector()
    twice = [finding("network_irq", "would_change", "affinity", where=where) for where in ("ens5", "ens6")]
    collected.add("h1", result_with(*twice, reboot_required=True, errors={"smt": "busy"}), failed=True)
    collected.unreachable("h2", "gone")
    collected.expect(["h3", "h4"])
    collected.skipped(["h3"])
    found = metrics(collected.report(reports.RUN))
    assert found["nearmetal_findings"] == {("h1", "network_irq", "affinity", "would_change"): 2}
    hosts = {"reported": 0, "failed": 1, "unreachable": 1, "skipped": 1, "silent": 1}
    assert found["nearmetal_hosts"] == {(state,): count for state, count in hosts.items()}
    assert found["nearmetal_host_reported"] == {("h1",): 0, ("h2",): 0, ("h4",): 0}, "not for a skipped one"
    assert found["nearmetal_reboot_required"] == {("h1",): 1}, "of the others it isn't known"
    assert found["nearmetal_failed_concerns"] == {("h1",): 1}
    assert "nearmetal_settings_to_change" not in found
    assert found["nearmetal_report_timestamp_seconds"] == {(): 1769860800}
    assert found["nearmetal_report_duration_seconds"] == {(): 60}


def test_a_review_that_is_due_is_a_number_for_prometheus() -> None:
    def review(status: str) -> Dict[str, Any]:
        return result_with(finding("kernel_check", status, "review_after"))

    found = metrics(reports.report(review("advice"), review("ok"), review("waived"), result_with()))
    assert found["nearmetal_review_due"] == {("h0",): 1, ("h1",): 0, ("h2",): 0}


def test_no_value_and_no_sentence_in_prometheus() -> None:
    text = prometheus.render(reports.report(result_with(SLOW_CLOCK)))
    assert not re.search(r"\bxen\b", text)  # the class of the host is a label
    assert "vDSO" not in text


def test_a_value_of_the_user_has_no_other_source() -> None:
    """A report cited a vendor for a value that somebody had chosen otherwise."""
    findings = [finding("memory", "would_change", knob, reference="SUSE guide") for knob in ("swappiness", "dirty")]
    actions = [
        {"concern": "memory", "knob": knob, "what": "sysctl", "wanted_by": by}
        for knob, by in (("swappiness", "user"), ("dirty", "workload"))
    ]
    (host,) = reports.report(result_with(*findings, actions=actions)).hosts
    assert {entry.knob: entry.reference for entry in host.findings} == {
        "swappiness": "your value",
        "dirty": "SUSE guide",
    }
