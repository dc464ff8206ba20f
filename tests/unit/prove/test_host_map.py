# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several hosts: each has its own verdict, and their combined result is wrong no more often than promised."""

from __future__ import annotations

import math
import random
import re
from typing import Any, Dict, List, Optional, Sequence

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.evidence import LAMBDAS, path
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.record import Measurement
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.step import Step
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.verdict import verdict
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._prove import figures, host_map
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._prove.page import heat_map

from tests.support.fleet import Fleet
from tests.support.prove.proofs import noisy, run

FIRST: Dict[str, Any] = {"name": "ops", "unit": "1/s", "better": "larger", "change": 5.0, "low": 1.0, "high": 9.0}


def host(differences: Sequence[float], how: str = "average", name: str = "db-1", **metric: Any) -> host_map.Host:
    return host_map.Host(name, "better", True, [{**FIRST, **metric}], differences, how)


def result(effect: float, seed: int, **settings: Any) -> Dict[str, Any]:
    """What a task of prove returns."""
    found = verdict(run(noisy(effect, 0.02, seed), seed=seed, **settings))
    return {"verdict": found.as_dict(), "kept": found.keep, "changed": found.keep, "msg": found.verdict}


def parts_of(*results: Dict[str, Any]) -> List[host_map.Host]:
    found = (host_map.host_of(f"db-{number}", outcome) for number, outcome in enumerate(results, 1))
    return [host_result for host_result in found if host_result is not None]


def sides(differences: Sequence[float], shift: float = 0.0) -> "tuple[float, float]":
    """The evidence of the last pair for a gain and for a loss, by its definition."""
    products = {
        strength: math.prod(math.exp(strength * (d - shift)) / math.cosh(strength * (d - shift)) for d in differences)
        for size in LAMBDAS
        for strength in (size, -size)
    }
    gain = sum(value for strength, value in products.items() if strength > 0)
    return gain / len(products), (sum(products.values()) - gain) / len(products)


@pytest.mark.parametrize("how", ["average", "multiply"])
def test_the_evidence_of_several_hosts_is_averaged_or_multiplied(how: str) -> None:
    generator = random.Random(how)
    runs = [[generator.gauss(0.02, 0.03) for _pair in range(count)] for count in (8, 12, 20)]
    found = host_map.combine([host(run, how) for run in runs])
    assert found is not None

    def combined(shift: float) -> "tuple[float, float]":
        above, below = zip(*(sides(run, shift) for run in runs))
        if how == "average":
            return sum(above) / 3, sum(below) / 3
        return math.prod(2 * side for side in above) / 2, math.prod(2 * side for side in below) / 2

    assert found.evidence == pytest.approx(max(combined(0.0)))
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.change <= found.high
    assert combined(math.log1p(found.low / 100))[0] == pytest.approx(20, rel=1e-6)
    assert combined(math.log1p(found.high / 100))[1] == pytest.approx(20, rel=1e-6)
    turned = host_map.combine([host([-d for d in run], how, better="smaller") for run in runs])
    assert turned is not None
    assert (turned.change, turned.evidence) == (pytest.approx(found.change), pytest.approx(found.evidence, rel=1))


def test_ten_hosts_without_effect_are_wrong_together_in_at_most_one_of_twenty_plays() -> None:
    generator, plays = random.Random(3), 300
    wrong = {"average": 0, "multiply": 0}
    for _play in range(plays):
        ends = []
        for _host in range(10):
            differences = [generator.gauss(0, 0.03) for _pair in range(12)]
            steps = path(differences)
            # Each host stops when its own evidence decides.
            ends.append(next((step for step in steps if max(step) >= 20), steps[-1]))
        for how in wrong:
            above = host_map._combined_side([step.above for step in ends], how)
            below = host_map._combined_side([step.below for step in ends], how)
            wrong[how] += max(above, below) >= 20
    for how, count in wrong.items():
        assert count / plays <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / plays), how


@pytest.mark.parametrize(
    "hosts",
    [
        [host([0.1] * 8)],
        [host([0.1] * 8), host([])],
        [host([0.1] * 8), host([0.1] * 8, name="db-2", unit="ms")],
        [host([0.1] * 8), host([0.1] * 8, "multiply")],
    ],
    ids=["one host", "one without pairs", "another unit", "another way"],
)
def test_hosts_that_compared_different_things_have_no_common_result(hosts: List[host_map.Host]) -> None:
    assert host_map.combine(hosts) is None


@pytest.mark.parametrize(
    "other",
    [{"tested": ["network_stack.somaxconn"]}, {"load": "bench --server db-1 --more"}, {"against": "workload web"}],
    ids=["settings", "load", "against"],
)
def test_hosts_that_compared_something_else_are_not_combined(other: Dict[str, Any]) -> None:
    first, second = result(0.08, 1), result(0.08, 2)
    for number, outcome in enumerate((first, second), 1):
        outcome.update(tested=["clocksource.source"], load=f"bench --server db-{number}", against="")
    shown = host_map.lines(parts_of(first, second), lambda line, _color: line)
    assert shown[-1].startswith("  combined, requests on 2 hosts: ")
    hosts = parts_of(first, {**second, **other})
    assert host_map.combine(hosts) is None
    assert host_map.lines(hosts, lambda line, _color: line)[-1] == (
        "  not combined: the hosts had different loads, settings, figures or tunings to compare with"
    )


def test_a_host_with_biased_pairs_is_not_combined_with_others() -> None:
    def restless(step: Step, measurement: Measurement) -> Measurement:
        voided = step.switch_to == "tuned" and step.phase == "pair" and step.pair % 2 and step.attempt == 1
        return measurement._replace(state_lost="thp is always") if voided and step.pair < 12 else measurement

    found = verdict(run(noisy(0.025, 0.03, 4), restless, seed=21, pairs=200, soak=0))
    assert (found.verdict, found.selection) == ("unclear", True)
    selected = {"verdict": found.as_dict(), "kept": False}
    undecided = result(0.0, 3, pairs=8)
    assert undecided["verdict"]["verdict"] == "unclear"
    fair = host_map.combine(parts_of(result(0.08, 1), undecided))
    hosts = parts_of(result(0.08, 1), undecided, selected)
    common = host_map.combine(hosts)
    assert fair is not None
    assert common == fair._replace(left_out=1)
    assert host_map.lines(hosts, lambda line, _color: line, 200)[-1].endswith(
        " averaged (20:1 is needed); 1 left out, because guards voided more pairs in one state than chance explains"
    )
    assert host_map.combine(parts_of(result(0.08, 1), selected)) is None


def test_very_strong_evidence_on_both_sides_stays_a_number() -> None:
    common = host_map.combine([*[host([0.8] * 200, "multiply")] * 6, host([-150.0] * 6, "multiply")])
    assert common is not None
    assert math.isfinite(common.evidence)
    lines = host_map.lines(
        [host([0.06] * 14, "multiply"), host([0.06] * 8, "multiply")], lambda line, _color: line, 200
    )
    assert "evidence more than 100000:1" in lines[-1]
    strong = host_map.combine([host([0.8] * 200, "multiply")] * 6)
    assert strong is not None
    assert math.isfinite(strong.evidence)
    assert strong.evidence > 1e100


def test_the_map_has_a_row_for_each_host_and_marks_that_need_no_color() -> None:
    hosts = parts_of(result(0.08, 1), result(-0.08, 2), {"changed": False, "msg": "nothing differs"})
    lost: Optional[host_map.Host] = host_map.host_of("db-4\x1b[31m", {}, "unreachable")
    assert lost is not None
    shown = host_map.lines([*hosts, lost], lambda line, _color: line)
    assert shown[0] == "PROVE  3 hosts: 1 better, 1 worse, 1 unreachable"
    assert shown[2].startswith("  ▲  db-1  better, kept  +")
    assert shown[3].startswith("  ▼  db-2  worse         −")
    assert shown[4] == "  ✗  db-4  unreachable   –"
    assert shown[5].startswith("  combined, requests on 2 hosts: ")
    assert " averaged (20:1 is needed)" in shown[5]
    separate = host_map.lines([host([0.1] * 30), host([-0.1] * 30, name="db-2")], lambda line, _color: line)
    assert separate[-1] == "  combined, ops on 2 hosts: the effect differs from host to host"
    painted = host_map.lines(hosts, lambda line, color: f"<{color}>{line}")
    assert [line.split(">")[0] for line in painted[2:4]] == ["  <green", "  <red"]


def test_the_color_of_a_figure_on_the_page_depends_on_what_is_better() -> None:
    hosts = [host([0.1] * 8, name="db-1"), host([0.1] * 8, name="db-2", better="smaller")]
    hosts += [host([0.1] * 8, name="db-3")._replace(selected=True), host([0.1] * 8, name="db-4", low=-1.0)]
    looks = re.findall(r'<td class="([a-z0-9-]+)" data-figure="ops">', heat_map.render(hosts, 0.0))
    assert looks == ["better-2", "worse-2", "open-2", "open-2"]


def test_a_host_that_fails_or_is_not_quiet_stops_no_other_and_the_map_has_them_all(fleet: Fleet) -> None:
    fleet.inventory(
        {
            "db-1": {"module_result": result(0.08, 1)},
            "db-2": {
                "module_result": {**result(0.08, 2), "verdict": {**result(0.08, 2)["verdict"], "verdict": "not_quiet"}}
            },
            "db-3": {"fate": "dies"},
            "db-4": {"fate": "unreachable"},
        }
    )
    done = fleet.run("-e", "prove_command=true", "-e", "target=all", playbook="nearmetal.ec2.prove")
    assert done.returncode in (2, 4), done.stderr
    assert "PROVE  4 hosts: " in done.stdout, done.stdout
    shown = done.stdout[done.stdout.index("PROVE  4 hosts: ") :].splitlines()
    rows = sorted(line.split()[1] for line in shown if line[2:3] in ("▲", "?", "✗"))
    assert rows == ["db-1", "db-2", "db-3", "db-4"]
    assert any(line.startswith("  combined, requests on 2 hosts: +") for line in shown)
    (page,) = (fleet.reports / "prove").glob("hosts-*.html")
    assert any(line.startswith("  as a page: ") and line.endswith(page.name) for line in shown)
    rows = re.findall(r'<th scope="row">(.*?)</th>', page.read_text("utf-8"))
    assert sorted(rows) == ["db-1", "db-2", "db-3", "db-4"]


def test_a_map_that_is_wider_than_the_terminal_has_a_line_for_each_figure() -> None:
    figures = [{**FIRST, "name": name} for name in ("throughput", "p99", "p999")]
    names = [f"ip-10-0-0-{number}.eu-central-1.compute.internal" for number in (1, 2)]
    hosts = [host_map.Host(name, "better", True, figures, [0.05] * 6, "average") for name in names]
    shown = host_map.lines(hosts, lambda line, _color: line, 80)
    assert max(map(len, shown)) <= 80
    assert shown[2] == "  ▲  ip-10-0-0-1.eu-centr…-1.compute.internal  better, kept"
    assert shown[3:6] == [f"     {name}: +5.0 % (+1.0 to +9.0)" for name in ("throughput", "p99", "p999")]


@pytest.mark.parametrize(
    ("evidence", "text"), [(0.5, "0.5:1"), (38.4, "38:1"), (54321.0, "54321:1"), (1e6, "more than 100000:1")]
)
def test_evidence_is_a_number_without_an_exponent(evidence: float, text: str) -> None:
    assert figures.ratio(evidence) == text
