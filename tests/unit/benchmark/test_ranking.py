# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts of one type are ranked by their runs, and an odd one out is named where it is one."""

from __future__ import annotations

import json
import math
import random
import re
from pathlib import Path
from typing import Any, Callable, Dict, List

import jsonschema
import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.metrics import LARGER, SMALLER, Metric
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._benchmark import ranking, sentences, store
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._benchmark.store import Entry
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._forms import html, markdown, terminal
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report import document
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report.collect import Collector
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.support.report import reports
from tests.support.report.benchmarked import DAY, a_run, fleet_of, steady

FLEETS = 500
THREE_DEVIATIONS = 3 * math.sqrt(0.05 * 0.95 / FLEETS)
SCHEMA = Path(document.__file__).with_name("report.schema.json")


def ranked(runs: Dict[str, List[Entry]]) -> ranking.Ranking:
    (found,) = ranking.rankings(runs, runs)
    return found


def odd_ones(runs: Dict[str, List[Entry]]) -> List[str]:
    return [host.host for ranking in ranking.rankings(runs, runs) for host in ranking.hosts if host.odd]


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 7, 8, 18, 99, 998])
def test_student_s_t_is_that_of_another_program(degrees: int) -> None:
    for distance in (0.0, 0.1, 1.0, 2.5, 7.0, 40.0):
        assert ranking.tail_probability(distance, degrees) == pytest.approx(
            2 * stats.t.sf(distance, degrees), abs=1e-12
        )
    for probability in (0.5, 0.05, 0.005, 1e-4, 1e-6):
        assert ranking.quantile(probability, degrees) == pytest.approx(stats.t.isf(probability / 2, degrees), rel=1e-6)


def test_the_slow_one_of_ten_is_named_with_its_interval() -> None:
    ranking = ranked(fleet_of(steady(odd=math.log(0.89))))
    last = ranking.hosts[-1]
    assert (last.host, last.odd, ranking.runs, ranking.days) == ("h-3", True, 5, 5)
    assert last.low is not None
    assert last.high is not None
    assert last.low < -11 < last.high < 0
    assert [host.odd for host in ranking.hosts[:-1]] == [False] * 9
    (said, seen) = sentences.sentences(ranking)
    assert said.startswith("h-3: this m5.2xlarge is 1")
    assert said.endswith(" than its nine sisters")
    assert seen.startswith("a difference of ")


def test_the_interval_is_that_of_another_program() -> None:
    values = steady(hosts=6, odd=-0.2, seed=3)
    medians = [math.log(sorted(found)[2]) for found in values]
    others = medians[:2] + medians[3:]
    mean, deviation = sum(others) / 5, stats.tstd(others)
    reach = stats.t.isf(0.05 / 6 / 2, 4) * deviation * math.sqrt(1 + 1 / 5)
    (found,) = [host for host in ranked(fleet_of(values)).hosts if host.host == "h-3"]
    expected = [100 * math.expm1(medians[2] - mean + shift) for shift in (0, -reach, reach)]
    assert [found.change, found.low, found.high] == pytest.approx(expected, rel=1e-9)


def test_where_less_is_better_the_long_time_is_the_slow_one() -> None:
    runs = fleet_of(steady(odd=0.2))
    for entries in runs.values():
        entries[:] = [each._replace(metrics=(each.metrics[0]._replace(better=SMALLER),)) for each in entries]
    ranking = ranked(runs)
    assert (ranking.hosts[-1].host, ranking.hosts[-1].odd) == ("h-3", True)
    assert " % slower (" in sentences.sentences(ranking)[0]


def alike(generator: random.Random, hosts: int) -> List[List[float]]:
    centers = [generator.gauss(0, 0.02) for _host in range(hosts)]
    return [[center + generator.gauss(0, 0.02) for _run in range(5)] for center in centers]


def with_spikes(generator: random.Random, hosts: int) -> List[List[float]]:
    """A tenth of the runs lose 5 to 40 %."""
    return [
        [each + (math.log(generator.uniform(0.6, 0.95)) if generator.random() < 0.1 else 0) for each in host]
        for host in alike(generator, hosts)
    ]


def with_a_bad_day(generator: random.Random, hosts: int) -> List[List[float]]:
    """On some host a neighbor takes 12 % for two runs."""
    found = alike(generator, hosts)
    victim, first = generator.randrange(hosts), generator.randrange(4)
    found[victim] = [each - (0.12 if first <= run <= first + 1 else 0) for run, each in enumerate(found[victim])]
    return found


@pytest.mark.parametrize("hosts", [4, 10, 25])
@pytest.mark.parametrize("noise", [alike, with_spikes, with_a_bad_day])
def test_without_an_odd_one_at_most_one_of_twenty_fleets_has_one_named(
    noise: Callable[[random.Random, int], List[List[float]]], hosts: int
) -> None:
    named = 0
    for seed in range(FLEETS):
        generator = random.Random(f"{noise.__name__} {hosts} {seed}")
        named += bool(odd_ones(fleet_of([[math.exp(each) for each in host] for host in noise(generator, hosts)])))
    assert named <= (0.05 + THREE_DEVIATIONS) * FLEETS


@pytest.mark.parametrize("bad", [3, 4])
def test_bad_runs_are_not_a_slow_instance(bad: int) -> None:
    values = steady()
    values[2] = [each * (0.8 if run < bad else 1) for run, each in enumerate(values[2])]
    assert odd_ones(fleet_of(values)) == ([] if bad == 3 else ["h-3"])


def test_the_page_says_how_many_sisters_are_needed() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs/benchmarks.md").read_text("utf-8")
    counts, times = (
        [float(cell) for cell in re.findall(r"[0-9.]+", page[page.index(start) :].split("\n", 1)[0])]
        for start in ("| hosts | 4", "| times the spread |")
    )
    expected = [stats.t.isf(0.05 / k / 2, k - 2) * math.sqrt(1 + 1 / (k - 1)) for k in counts]
    assert times == [round(each, 1) for each in expected]


def test_several_rankings_of_one_report_share_the_5_percent() -> None:
    named = 0
    for seed in range(300):
        generator = random.Random(seed)
        runs: Dict[str, List[Entry]] = {}
        for kind in ("m5.large", "m5.xlarge", "m5.4xlarge", "c5.large", "r5.large"):
            values = [[math.exp(each) for each in host] for host in alike(generator, 6)]
            found = fleet_of(values, instance_type=kind)
            runs.update({f"{kind}-{host}": entries for host, entries in found.items()})
        named += bool(odd_ones(runs))
    assert named <= (0.05 + 3 * math.sqrt(0.05 * 0.95 / 300)) * 300


def test_an_odd_one_is_seen_as_often_as_the_report_says() -> None:
    # What "would have been seen" promises: a host that is twice as far away is nearly always named.
    seen = 0
    for seed in range(200):
        visible = ranked(fleet_of(steady(seed=seed))).visible
        assert visible is not None
        seen += "h-3" in odd_ones(fleet_of(steady(odd=-2 * math.log1p(visible / 100), seed=seed)))
    assert seen >= 190


@pytest.mark.parametrize(
    ("values", "words_of_the_obstacle"),
    [
        (steady(hosts=3, odd=-0.5), "nobody is judged: that takes 4 hosts of the type, each with 5 runs on at least "),
        ([found[:4] for found in steady(odd=-0.5)], "2 days; 0 of 10 have them"),
    ],
)
def test_with_too_few_nobody_is_judged(values: List[List[float]], words_of_the_obstacle: str) -> None:
    ranking = ranked(fleet_of(values))
    assert words_of_the_obstacle in sentences.sentences(ranking)[0]
    assert [host.change for host in ranking.hosts] == [None] * len(values)
    assert ranking.hosts[-1].host == "h-3", "it is a ranking all the same"


def test_runs_of_one_day_judge_nobody() -> None:
    runs = fleet_of(steady(odd=-0.5))
    same_day = {host: [each._replace(at=entries[0].at) for each in entries] for host, entries in runs.items()}
    assert odd_ones(runs) == ["h-3"]
    assert odd_ones(same_day) == []


def test_a_difference_below_the_margin_is_none() -> None:
    values = [[30000.0 + number] * 5 for number in range(10)]
    assert odd_ones(fleet_of([*values[:9], [29700.0] * 5])) == []
    assert odd_ones(fleet_of([*values[:9], [29100.0] * 5])) == ["h-10"]


def test_only_runs_of_the_same_kind_and_of_this_instance_are_compared() -> None:
    runs = fleet_of(steady())
    runs["h-3"] = [each._replace(versions=("fio: fio-3.39",)) for each in fleet_of(steady(odd=-0.5))["h-3"]]
    assert odd_ones(runs) == []
    assert len(ranked(runs).hosts) == 9
    # The name means another instance now: what the one before it did is no longer of interest.
    before = [each._replace(instance="ba9876543210", at=each.at - 30 * DAY) for each in runs["h-1"]]
    runs["h-1"] = [each._replace(metrics=(Metric("read_rate", 1.0, "1/s", LARGER),)) for each in before] + runs["h-1"]
    assert odd_ones(runs) == []
    assert odd_ones(fleet_of(steady(odd=-0.5), instance_type="")) == [], "outside EC2 nothing is a type"


def test_an_odd_host_with_a_kernel_of_its_own_is_reported_with_it() -> None:
    runs = fleet_of(steady(odd=-0.2))
    runs["h-3"] = [each._replace(kernel="5.10.9") for each in runs["h-3"]]
    assert sentences.sentences(ranked(runs))[0].endswith("sisters; it alone has kernel 5.10.9")


def test_a_ranking_without_a_host_of_this_run_is_left_out() -> None:
    runs = fleet_of(steady())
    assert ranking.rankings(runs, ["elsewhere"]) == ()
    assert len(ranking.rankings(runs, ["h-5", "elsewhere"])) == 1


def test_every_form_of_the_report_names_the_odd_one() -> None:
    runs = fleet_of(steady(odd=math.log(0.85)))
    collected = Collector()
    collected.expect(["h-1"])
    report = collected.report(reports.RUN, rankings=ranking.rankings(runs, ["h-1"]))
    said = sentences.sentences(report.rankings[0])[0]
    plain = json.loads(document.dump(report))
    jsonschema.validate(plain, json.loads(SCHEMA.read_text("utf-8")))
    assert plain["rankings"][0]["says"][0] == said
    assert said in html.render(report)
    assert said in markdown.render(report).replace("\\", "").replace("&#37;", "%")
    shown = terminal.render(report, 200)
    assert f"  {said}" in shown
    assert any(
        line.startswith("RANKING  disk shape random_read on 10 m5.2xlarge: read_rate in 1/s, ") for line in shown
    )
    assert all(len(line) <= 60 for line in sentences.lines(report.rankings, lambda line, _color: line, 60))


def test_extreme_figures_end_in_a_report() -> None:
    runs = fleet_of([[1e100] * 5, [1e-100] * 5, *steady(hosts=4)])
    report = Collector().report(reports.RUN, rankings=ranking.rankings(runs, runs))
    assert json.loads(document.dump(report))["rankings"]


def test_a_run_is_added_and_read_again(tmp_path: Path) -> None:
    first, second = a_run("db 1/x", 100.0), a_run("db 1/x", 200.0, day=1)
    path = Path(store.append(str(tmp_path), second))
    assert Path(store.append(str(tmp_path), first)) == path
    assert (path.name, path.stat().st_mode & 0o777) == ("db_1_x.jsonl", 0o600)
    assert store.runs(str(tmp_path)) == {"db 1/x": [first, second]}
    assert store.runs(str(tmp_path / "absent")) == {}


def test_a_line_that_was_cut_costs_no_other_run(tmp_path: Path) -> None:
    path = Path(store.append(str(tmp_path), a_run("db-1", 100.0)))
    path.write_bytes(path.read_bytes() + b'{"format":1,"host":"db-1","a')
    store.append(str(tmp_path), a_run("db-1", 200.0, day=1))
    assert [each.metrics[0].value for each in store.runs(str(tmp_path))["db-1"]] == [100.0, 200.0]


def test_a_link_in_place_of_a_file_is_neither_written_nor_read(tmp_path: Path) -> None:
    (tmp_path / "benchmark").mkdir()
    (tmp_path / "elsewhere").write_text(store.line_of(a_run("db-1", 1.0)))
    (tmp_path / "benchmark/db-1.jsonl").symlink_to(tmp_path / "elsewhere")
    assert store.runs(str(tmp_path)) == {}
    with pytest.raises(Exception, match="can't be written"):
        store.append(str(tmp_path), a_run("db-1", 2.0))


def test_a_file_speaks_for_its_own_host_alone(tmp_path: Path) -> None:
    path = Path(store.append(str(tmp_path), a_run("db-1", 100.0)))
    path.write_text(path.read_text() + store.line_of(a_run("db-2", 1.0)))
    assert list(store.runs(str(tmp_path))) == ["db-1"]


@pytest.mark.parametrize(
    "changed",
    [
        {"format": 2},
        {"format": True},
        {"at": -1},
        {"at": 1e99},
        {"benchmark": "nothing"},
        {"instance_type": "x"},
        {"instance": "i-0123456789abcdef0"},
        {"kernel": "\x1b[31m"},
        {"host": "h" * 300},
        {"metrics": []},
        {"metrics": [{"name": "a", "value": 0, "unit": "", "better": "larger"}]},
        {"metrics": [{"name": "$(a)", "value": 1, "unit": "", "better": "larger"}]},
        {"metrics": [{"name": "a", "value": 1, "unit": "", "better": "faster"}]},
        {"metrics": [{"name": "a", "value": True, "unit": "", "better": "larger"}]},
        {"versions": ["a\nb"]},
    ],
)
def test_a_line_of_another_form_is_left_out(changed: Dict[str, Any]) -> None:
    plain = json.loads(store.line_of(a_run("db-1", 100.0)))
    assert store.entry_of_line(json.dumps(plain).encode()) == a_run("db-1", 100.0)
    assert store.entry_of_line(json.dumps({**plain, **changed}).encode()) is None


@given(st.binary(max_size=200))
def test_any_bytes_are_a_run_or_none(line: bytes) -> None:
    assert store.entry_of_line(line) is None


@given(
    st.dictionaries(
        st.sampled_from(["platform", "versions", "metrics"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
            max_leaves=6,
        ),
    )
)
def test_whatever_a_host_says_is_a_run_or_none(result: Dict[str, Any]) -> None:
    found = store.entry_of_result("db-1", 1, "clock", "{}", result)
    assert found is None or store.entry_of_line(store.line_of(found).encode()) == found
