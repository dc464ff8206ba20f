# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report in the terminal: it fits, and the marks are below their names."""

from __future__ import annotations

import dataclasses
import io
import itertools
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.modules import tune
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._forms import html, markdown, terminal
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._forms.progress import Progress
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report.collect import Collector

from tests.support.fake_kernel import FakeKernel
from tests.support.fleet import GOOD_CLOCK, SLOW_CLOCK, finding, result_with
from tests.support.hosts import files_of
from tests.support.report import reports

Call = Callable[..., Dict[str, Any]]
NAMES = ("clocksource", "cpu_power", "kernel_check", "numa", "hugepages", "network_irq", "network_stack")


def shown(report: reports.Report, columns: int = 80) -> List[str]:
    return terminal.render(report, columns)


@pytest.mark.parametrize("columns", [40, 60, 80, 132])
@pytest.mark.parametrize("hosts", [1, 3, 400])
def test_lines_fit(columns: int, hosts: int) -> None:
    statuses = ("needs_reboot", "needs_restart", *["advice"] * len(NAMES))
    result = result_with(
        *[
            finding(name, status, knob="k" * 30, now="v" * 90, reason="word " * 60)
            for name, status in zip(NAMES, statuses)
        ]
    )
    collected = Collector()
    for number in range(hosts):
        collected.add(f"host-{number}.with.a.long.name.example.com", result)
    collected.failed("dead", "w" * 300)
    lines = shown(collected.report(reports.RUN), columns)
    assert max(len(line) for line in lines if not line.strip().startswith("ansible-playbook ")) <= columns


def test_what_was_planned_stands_before_what_follows_from_it() -> None:
    """Hosts for which nobody named a workload look as if nothing were left: most of what could be is not looked at."""
    good = result_with(GOOD_CLOCK)
    lines = shown(reports.report(good, good))
    assert lines[1] == "Planned for: base on 2 hosts (no tune_workload); 1 of 13 concerns"
    text = " ".join(" ".join(lines).split())
    assert "Nothing is left to change on 2 hosts in the 1 of 13 concerns that were looked at." in text
    assert "Not looked at: smt, cpu_power, hugepages, " in text
    assert (
        "  ansible-playbook nearmetal.ec2.audit -i hosts.yml -e tune_workload=auto -e tune_workload_auto=apply" in lines
    )
    named = shown(reports.report({**good, "workload": ["web"]}, good))
    assert "Planned for: web on 1 host, base on 1 host (no tune_workload)" in " ".join(named)
    assert [line for line in named if line.startswith("Next: h1 has no tune_workload: ")]
    assert not [line for line in shown(reports.report({**good, "workload": ["web"]})) if line.startswith("Next: ")]
    asked = result_with(GOOD_CLOCK, finding("tune", "advice", "workload", wanted="web"))
    assert "(no tune_workload)" not in " ".join(shown(reports.report(asked)))


def test_the_terminal_and_the_page_leave_out_as_many_findings() -> None:
    result = result_with(*(finding(name, "would_change", knob) for name in NAMES[:4] for knob in ("a", "b", "c")))
    report = reports.report(result, result)
    assert "     7 further findings in the report" in shown(report)
    assert "7 further findings in the hosts below." in html.render(report)


def test_where_nothing_helps_the_list_of_open_findings_doesn_t_promise_it() -> None:
    held = result_with(finding("clocksource", "refused"), finding("kernel_check", "unknown"))
    assert "What stays open" in shown(reports.report(held, held))
    slow = result_with(SLOW_CLOCK, finding("kernel_check", "unknown"))
    assert "What would help most" in shown(reports.report(slow, held))


@pytest.mark.parametrize("columns", [80, 200])
def test_a_restore_says_once_what_all_its_settings_share_and_has_no_worth(columns: int) -> None:
    back = "taken back to what it was before nearmetal"
    given = [finding(name, "changed", "a", now=1, wanted=2, reason=back) for name in NAMES[:4]]
    left = finding("hugepages", "advice", "thp", now="never", wanted="always", reason="somebody set it")
    report = dataclasses.replace(
        reports.report(result_with(*given, left)), run=dataclasses.replace(reports.RUN, mode="restore")
    )
    text = "\n".join(shown(report, columns))
    assert "4 settings on this host were given back; 1 setting was left as it is." in text
    assert text.count(back) == 1
    pages = (text, markdown.render(report), html.render(report))
    assert not [word for page in pages for word in ("unmeasured</dd>", "Worth:", "would help") if word in page]


@pytest.mark.parametrize("columns", range(60, 100, 5))
def test_each_line_of_a_long_sentence_has_as_many_words_as_fit(columns: int) -> None:
    words = "workload redis is unknown; there are analytics, burstable, hpc, in_memory_database, jvm, low_latency " * 3
    collected = Collector()
    collected.failed("db-1", words)
    lines = shown(collected.report(reports.RUN), columns)
    start = next(number for number, line in enumerate(lines) if line.startswith("✗ db-1"))
    paragraph = [lines[start], *itertools.takewhile(lambda line: line.startswith("  "), lines[start + 1 :])]
    assert len(paragraph) > 3
    for line, following in zip(paragraph, paragraph[1:]):
        assert len(line) + 1 + len(following.split()[0]) > columns


@pytest.mark.parametrize("columns", [80, 200])
def test_of_a_single_host_what_there_is_to_do_stands_before_what_is_open_and_what_is_right(columns: int) -> None:
    findings = [finding(name, status) for name, status in zip(NAMES, ("ok", "refused", "not_applicable", "waived"))]
    result = result_with(*findings, finding("network_irq", "would_change"), finding("hugepages", "needs_reboot"))
    lines = shown(reports.report({**result, "errors": {"network_stack": "it broke"}}), columns)
    table = lines[lines.index("") :]
    assert "".join(line[0] for line in table if line[:2] in ("✗ ", "● ", "↻ ", "! ", "✓ ", "– ", "~ ")) == "↻✗●!✓–~"


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_a_path_is_reported_in_full_and_once(columns: int) -> None:
    path = "/etc/tmpfiles.d/nearmetal-hugepages.conf"
    kept = finding("hugepages", "would_change", "persist", where=path, wanted=path, reason="kept")
    long = finding("network_irq", "would_change", "policy", now="a" * 30, wanted="b" * 30, where="0000:00:05.0")
    text = "".join(shown(reports.report(result_with(kept, long)), columns)).replace(" ", "")
    assert text.count(path) == 1
    assert f"–→{path}" in text
    assert f"policy0000:00:05.0{'a' * 30}→{'b' * 30}" in text


def test_a_removed_value_is_shown_as_a_change_to_nothing() -> None:
    path = "/etc/tmpfiles.d/nearmetal-hugepages.conf"
    taken = finding("hugepages", "changed", "persist", where=path, now="written", reason="taken back")
    lines = [" ".join(line.split()) for line in shown(reports.report(result_with(taken)))]
    assert f"◆ hugepages persist {path} written → –" in lines


def test_a_failed_concern_is_not_advised_again_unchanged() -> None:
    failed = {**result_with(finding("network_stack", "would_change")), "errors": {"network_stack": "refused"}}
    assert not [line for line in shown(reports.report(failed)) if line.startswith("To apply the changes")]
    both = result_with(finding("network_stack", "would_change"), finding("clocksource", "would_change"))
    rest = shown(reports.report({**both, "errors": {"network_stack": "refused"}}))
    assert [line for line in rest if line.startswith("To apply the changes")]


def test_a_mark_stands_under_the_bar_of_its_concern() -> None:
    result = result_with(*[finding(name, "ok") for name in NAMES if name != "numa"], finding("numa", "refused"))
    lines = shown(reports.report(result, result))
    row = next(line for line in lines if line.startswith("h0"))
    head = next(line for line in lines if "numa ┐" in line)
    assert head.index("┐") == row.index("!")


def test_concerns_stand_in_the_order_of_the_nine_headings() -> None:
    result = result_with(
        finding("profile", "ok"), finding("clocksource", "ok"), finding("ebs", "ok"), finding("new", "ok")
    )
    lines = shown(reports.report(result, result))
    names = [line.split()[0] for line in lines if "┐" in line]
    assert names == ["new", "profile", "ebs", "clocksource"]  # from right to left


def test_hosts_of_a_large_fleet_with_equal_marks_share_a_row() -> None:
    collected = Collector()
    for number in range(60):
        collected.add(f"web-{number:02d}", result_with(SLOW_CLOCK if number % 3 else GOOD_CLOCK))
    lines = shown(collected.report(reports.RUN))
    assert [line.split() for line in lines if line.startswith("web-")] == [
        ["web-01", "+39", "●"],
        ["web-00", "+19", "✓"],
    ]


def test_the_worst_status_speaks_for_a_cell() -> None:
    result = result_with(
        finding("numa", "ok", "a"), finding("numa", "would_change", "b"), finding("numa", "advice", "c")
    )
    assert ["h0", "●"] in [line.split() for line in shown(reports.report(result, result))]


@pytest.mark.parametrize("check", [True, False])
def test_a_persist_finding_neither_marks_a_good_concern_nor_comes_first(
    tmp_path: Path, call: Call, check: bool
) -> None:
    """The unit and persisted values are due on every host; the slow clock of one host matters more."""
    kinds = {"n1": "nitro", "n2": "nitro", "xen": "xen_hvm"}
    results = {
        name: call(tune.main, FakeKernel(tmp_path / name, files_of(kind)), check=check, workload="base")
        for name, kind in kinds.items()
    }
    lines = shown(reports.collector(results).report(reports.RUN))
    assert "of these only keep values over reboots" in " ".join(lines)
    mark = "●" if check else "◆"
    assert [line.split() for line in lines if line.startswith(("n1 ", "n2 ", "xen "))] == [
        ["n1", "✓", "✓", "–", "–", mark],
        ["n2", "✓", "✓", "–", "–", mark],
        ["xen", mark, "i", "–", "i", mark],
    ]
    tops = [line.split()[3] for line in lines if " host" in line and "  ● " in line]
    assert tops == (["clocksource.source", "clocksource.persist", "unit.agent"] if check else [])
    single = shown(reports.collector({"n1": results["n1"]}).report(reports.RUN), 100)
    assert [line.split()[2] for line in single if line.startswith(("● c", "◆ c", "✓ c"))] == ["source", "persist"]


def test_what_keeps_values_from_lasting_marks_the_unit_and_is_said_once() -> None:
    held = [finding(name, "refused", "persist", reason="no systemd") for name in ("clocksource", "hugepages")]
    report = reports.report(*[result_with(GOOD_CLOCK, finding("hugepages", "ok", "thp"), *held)] * 2)
    lines = [line.split() for line in shown(report)]
    assert ["h0", "✓", "✓", "!"] in lines
    assert ["unit", "┐"] in lines
    assert ["Refused:", "4", "findings:", "no", "systemd"] in lines
    page = markdown.render(report)
    assert "| h0 | reported | ✓ | ✓ | ! |" in page
    assert "Refused: 4 findings: no systemd" in page
    page = html.render(report)
    assert "<dt>Refused</dt><dd>4 findings: no systemd</dd>" in page
    assert '"concerns":["clocksource","hugepages","unit"]' in page.replace(" ", "")


def test_top_findings_come_by_number_of_hosts() -> None:
    rare, common = result_with(finding("smt", "would_change", now=1, wanted=2), SLOW_CLOCK), result_with(SLOW_CLOCK)
    lines = [
        line.strip() for line in shown(reports.report(rare, common, common)) if " hosts  ●" in line or "1 host " in line
    ]
    assert lines == ["3 hosts  ● clocksource.source  xen → tsc", "1 host  ● smt.source  1 → 2"]


def test_hosts_with_different_values_are_not_shown_with_a_single_value() -> None:
    other = result_with({**SLOW_CLOCK, "now": "hpet"})
    assert "would change" in next(
        line for line in shown(reports.report(result_with(SLOW_CLOCK), other)) if "2 hosts  ●" in line
    )


def test_a_good_finding_needs_no_remedy() -> None:
    newer = finding("kernel_check", "ok", knob="kernel", now="6.1.0", wanted="3.10", reason="3.10 or newer")
    lines = shown(reports.report(result_with(newer, SLOW_CLOCK)), 40)
    assert "✓ kernel_check kernel  6.1.0" in lines
    assert "● clocksource source  xen → tsc" in lines


@pytest.mark.parametrize("state", ["failed", "unreachable"])
def test_nothing_is_left_to_do_only_where_a_host_said_so(state: str) -> None:
    collected = reports.collector({"good": result_with(GOOD_CLOCK), "also": result_with(GOOD_CLOCK)})
    assert "Nothing is left to do." in shown(collected.report(reports.RUN))
    getattr(collected, state)("bad", "gone")
    assert "Nothing is left to do on the hosts that reported." in shown(collected.report(reports.RUN))


def test_an_all_clear_is_said_of_nobody_where_no_host_reported() -> None:
    collected = reports.collector({name: result_with(GOOD_CLOCK) for name in ("a", "b")})
    for name in ("a", "b"):
        collected.failed(name, "Restart the database: no such unit")
    earlier = ("2026-01-30T00:00:00Z", reports.report(result_with(GOOD_CLOCK)).hosts)
    report = collected.report(reports.RUN, fail_on=["would_change"], earlier=earlier)
    lines = shown(report)
    assert "2 hosts failed." in lines
    assert not [line for line in lines if "Nothing is left" in line]
    assert "audit_fail_on (would_change): no host reported" in lines
    assert "**audit\\_fail\\_on** (would\\_change): no host reported." in markdown.render(report)


def test_an_all_clear_of_a_gate_or_of_drift_is_said_of_the_hosts_that_reported() -> None:
    collected = reports.collector({name: result_with(GOOD_CLOCK) for name in ("a", "b")})
    earlier = collected.report(reports.RUN).hosts
    gone = dataclasses.replace(earlier[0], name="gone", state="unreachable")
    collected.unreachable("gone", "no route")
    report = collected.report(reports.RUN, fail_on=["refused"], earlier=("2026-01-30T00:00:00Z", (*earlier, gone)))
    lines, page, text = shown(report), html.render(report), markdown.render(report)
    assert "audit_fail_on (refused): none found on the hosts that reported" in lines
    assert "Drift since 2026-01-30T00:00:00Z: 0 changes on the hosts that reported" in lines
    assert "(refused): none found on the hosts that reported." in text
    assert "none found on the hosts that reported" in page
    assert 'class="note good"' not in page
    for form in (text, page):
        assert "Nothing changed on the hosts that reported." in form


def test_hosts_in_every_state_are_counted_in_full_and_a_row_says_that_its_host_failed_later() -> None:
    collected = reports.collector({name: result_with(GOOD_CLOCK) for name in ("a", "b", "c")})
    collected.failed("b", "Restart the database: no such unit")
    collected.unreachable("c", "no route")
    collected.expect(["d", "e"])
    collected.skipped(["d"])
    lines = shown(collected.report(reports.RUN), 60)
    assert lines[0] == "AUDIT  5 hosts: 1 reported, 1 failed, 1 unreachable, 1"
    assert lines[1] == "       skipped, 1 silent in 60.0 s"
    rows = [line.split() for line in lines if line[:2] in ("a ", "b ", "c ")]
    assert rows == [["a", "✓"], ["b", "✓", "✗"], ["c", "✓", "✗"]]


def test_a_skipped_host_is_said_to_be_skipped_and_is_no_trouble() -> None:
    collected = reports.collector({"redis-1": result_with(GOOD_CLOCK)})
    collected.expect(["web-1", "web-2"])
    collected.skipped(["web-1", "web-2"])
    report = collected.report(reports.RUN)
    painted = terminal.render(report, 80, lambda line, color: f"<{color}>{line}")
    (line,) = [line for line in painted if "web-1, web-2" in line]
    assert line == "<dark gray>– web-1, web-2: skipped: the play's conditions leave this host out"
    assert [line.split("<", 1)[1] for line in painted if line.startswith("web-1 ")] == ["dark gray>skipped"]
    assert "AUDIT  3 hosts: 1 reported, 2 skipped" in painted[0]
    assert "no result" not in "".join(painted)


def test_a_failed_concern_hides_no_other_problem_of_its_host() -> None:
    collected = Collector()
    for name in ("a", "b", "c"):
        collected.add(
            name, result_with(GOOD_CLOCK, errors={"smt": "busy"}, msg="clocksource: as wanted; smt: busy"), True
        )
    collected.failed("b", "Restart the database: no such unit")
    collected.unreachable("c", "no route")
    troubles = [line for line in shown(collected.report(reports.RUN)) if line.startswith("✗ ") and ":" in line]
    assert troubles == ["✗ b: failed: Restart the database: no such unit", "✗ c: unreachable: no route"]


def test_the_fix_of_a_cloud_finding_names_its_role() -> None:
    result = result_with(finding("ebs", "would_change", "type", now="gp2", wanted="gp3"))
    lines = shown(reports.report(result, result))
    assert "     fix   run the role nearmetal.ec2.ebs: see docs/cloud.md" in lines


def test_reboots_are_named() -> None:
    result = result_with(finding("smt", "needs_reboot"), reboot_required=True, reboot_reasons=["smt: nosmt"])
    assert "1 host needs a reboot: h1" in shown(reports.report(result_with(GOOD_CLOCK), result))


def test_commands_are_whole_lines_and_hosts_with_the_same_commands_share_them() -> None:
    lines = ["# clocksource.source: faster", f"echo tsc > /sys/{'d' * 90}/current_clocksource"]
    collected = Collector()
    for name in ("a", "b"):
        collected.add(name, {**result_with(SLOW_CLOCK), "commands": lines})
    collected.add("c", {**result_with(SLOW_CLOCK), "commands": [*lines, "sysctl -w net.core.somaxconn=4096\x1b[2J"]})
    report = collected.report(reports.RUN)
    printed = shown(report)
    start = printed.index("# On a, b")
    assert printed[start : start + 7] == ["# On a, b", *lines, "", "# On c", *lines]
    assert "sysctl -w net.core.somaxconn=4096" in printed
    assert f"    {lines[1]}\n" in markdown.render(report)


def test_limits_of_ec2_are_reported_with_numbers() -> None:
    samples = [
        {"interface": "ens5", "seconds": at, "packets": packets, "counters": {"pps_allowance_exceeded": events}}
        for at, packets, events in ((100, 0, 500), (400, 600_000_000, 1704))
    ]
    text = " ".join(" ".join(shown(reports.report(result_with(GOOD_CLOCK, allowances=samples)))).split())
    assert "ens5 is at EC2's limit (packets per second: 1,204 packets over it in 300 s): tuning can't help" in text
    assert "At 2,000,000 packets/s the host has 500 ns for each packet." in text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_time_left() -> None:
    now = [0.0]
    stream = Terminal()
    progress = Progress(stream, lambda: now[0])
    collected = Collector()
    collected.expect(f"h{number}" for number in range(100))
    progress.show(collected, "audit")
    for number in range(25):
        collected.add(f"h{number}", result_with(SLOW_CLOCK))
    now[0] = 30.0
    progress.show(collected, "audit")
    assert "audit: 25/100 hosts  25 to act on  1:30 left" in stream.getvalue()


def test_a_log_gets_a_line_every_ten_seconds() -> None:
    now = [0.0]
    stream = io.StringIO()
    progress = Progress(stream, lambda: now[0])
    collected = Collector()
    collected.expect(f"h{number}" for number in range(100))
    for second in range(41):
        now[0] = float(second)
        collected.add(f"h{second}", result_with(SLOW_CLOCK))
        progress.show(collected, "audit")
    lines = stream.getvalue().splitlines()
    assert [line.split("  ")[0] for line in lines] == [
        "audit: 11/100 hosts",
        "audit: 21/100 hosts",
        "audit: 31/100 hosts",
        "audit: 41/100 hosts",
    ]
    assert not any("\x1b" in line or "\r" in line for line in lines)
