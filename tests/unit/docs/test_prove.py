# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples of docs/prove.md and of the role's README work."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any, Dict, Set

import pytest
import yaml
from ansible_collections.nearmetal.ec2.plugins.action import prove as action
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.registry import CONCERNS
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.options import validate
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.metrics import metrics_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.record import Measurement
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.rules import VERDICTS
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.step import Step
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.verdict import verdict
from ansible_collections.nearmetal.ec2.plugins.module_utils._tasks.tuning import WANTED
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._prove import document, host_map, sentences
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report import proven

from tests.support.fresh_host import fresh
from tests.support.knobs import every_knob
from tests.support.prove.plays import Call, Play
from tests.support.prove.proofs import noisy, run, shared, start
from tests.support.prove.reboots import rebooting

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/prove.md").read_text("utf-8")
README = (ROOT / "roles/prove/README.md").read_text("utf-8")
AT_BOOT = {"services", "compute_units", "irqbalance", "mount"}  # which no switch changes
# What redis-benchmark 7.0 and valkey-benchmark 8.0 print with --csv.
CSV = '"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms"\n"GET","81234.77","0.31","0.10","0.29"\n'


def options(role: str) -> Set[str]:
    spec = yaml.safe_load((ROOT / f"roles/{role}/meta/argument_specs.yml").read_text("utf-8"))
    return set(spec["argument_specs"]["main"]["options"])


def variables() -> Dict[str, Dict[str, Any]]:
    (page,) = re.findall(r"^```yaml\n(# proof.yml\n.*?)^```$", PAGE, re.M | re.S)
    (readme,) = re.findall(r"^```yaml\n(.*?)^```$", README, re.M | re.S)
    return {"page": yaml.safe_load(page), "readme": yaml.safe_load(readme)[0]["roles"][0]["vars"]}


@pytest.mark.parametrize("place", ["page", "readme"])
def test_the_examples_have_variables_of_the_roles_and_a_load_that_is_read(place: str, tmp_path: Path) -> None:
    shown = variables()[place]
    assert set(shown) <= options("prove") | options("tune")
    (tmp_path / "redis-benchmark").write_text(f"#!/bin/sh\ncat <<'END'\n{CSV}END\n")
    (tmp_path / "redis-benchmark").chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", "-c", shown["prove_command"]],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        check=True,
    )
    (metric,) = metrics_of(done.stdout)
    assert (metric.name, metric.value, metric.unit, metric.better) == ("get", 81234.77, "requests/s", "larger")


@pytest.mark.parametrize("name", ["clock.yml", "thp.yml", "scheduler.yml"])
def test_what_was_measured_can_be_asked_again(name: str) -> None:
    page = (ROOT / "docs/measured.md").read_text("utf-8")
    (found,) = re.findall(rf"^```yaml\n(# {name}\n.*?)^```$", page, re.M | re.S)
    shown = yaml.safe_load(found)
    assert set(shown) <= options("prove") | options("tune")
    assert validate("tune", WANTED, {"concerns": shown["tune_concerns"]})["concerns"]
    for knob in shown["prove_only"]:
        concern, option = knob.split(".")
        assert option in shown["tune_concerns"][concern]


@pytest.mark.parametrize("name", ["proof", "here", "against", "boot"])
def test_an_example_of_the_page_has_something_to_compare(
    name: str, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(action.ActionModule, "report_directory", lambda _action: str(tmp_path / "report"))
    (page,) = re.findall(rf"^```yaml\n(# {name}.yml\n.*?)^```$", PAGE, re.M | re.S)
    shown: Dict[str, Any] = yaml.safe_load(page)
    assert set(shown) <= options("prove") | options("tune")
    given = {name.partition("_")[2]: value for name, value in shown.items() if name.startswith("prove_")}
    given["tune"] = {name.partition("_")[2]: value for name, value in shown.items() if name.startswith("tune_")}
    load = {} if given.keys() & {"command", "benchmark"} else {"command": "true"}
    hosts = {"against": "nitro_big"}
    host = rebooting(tmp_path / "host") if name == "boot" else fresh(tmp_path / "host", hosts.get(name, "nitro"))
    found = Play(call, host)(check=True, **{**load, **given})
    assert found.get("tested"), found
    assert host.written == []


def test_the_page_s_two_tunings_are_variables_of_the_roles_and_options_of_tune() -> None:
    (page,) = re.findall(r"^```yaml\n(# against.yml\n.*?)^```$", PAGE, re.M | re.S)
    shown = yaml.safe_load(page)
    assert set(shown) <= options("prove") | options("tune")
    assert validate("prove.against", WANTED, shown["prove_against"])["workload"] == shown["tune_workload"]
    for concern, values in shown["tune_concerns"].items():
        assert set(values) <= {knob.name for knob in CONCERNS[concern].knobs}


def test_the_page_names_every_setting_that_is_not_tested() -> None:
    (table,) = re.findall(r"^\| what the setting is for .*?\n\n", PAGE, re.M | re.S)
    named = set(re.findall(r"`([a-z_0-9]+)`", table)) | {"neighbor_gc_thresh2", "neighbor_gc_thresh3"}
    unfelt = {
        knob.name for knob in every_knob() if knob.scope == "runtime" and CONCERNS[knob.concern].unfelt(knob.name)
    }
    assert unfelt - {"compute_cpus"} <= named
    assert not named & {knob.name for knob in every_knob() if knob.lever} - unfelt - AT_BOOT


def test_the_page_names_every_variable_that_it_uses_and_every_verdict() -> None:
    assert set(re.findall(r"\bprove_[a-z_]+", PAGE)) <= options("prove")
    rows = set(re.findall(r"^\| `([a-z_]+)` \|", PAGE, re.M))
    assert rows == set(VERDICTS)


def test_the_page_shows_the_map_of_several_hosts() -> None:
    (shown,) = re.findall(r"^```text\n(PROVE  3 hosts.*?)^```$", PAGE, re.M | re.S)
    hosts = []
    for number, effect in enumerate((0.07, 0.05, 0.06), 1):
        found = verdict(run(noisy(effect, 0.015, number, "get"), host=f"redis-{number}"))
        result = {"verdict": found.as_dict(), "kept": found.keep}
        hosts += filter(None, [host_map.host_of(f"redis-{number}", result)])
    assert shown == "".join(f"{line}\n" for line in host_map.lines(hosts, lambda line, _color: line))


def test_the_page_shows_the_lines_of_each_concern() -> None:
    effects = {"clocksource": 0.06, "network_stack": 0.0}
    record = start(seed=4711, host="redis-1", each=True)
    begun = record.start._replace(tested=("clocksource.source", "network_stack.somaxconn"))
    record = run(shared(effects, 0.012), record=record._replace(start=begun))
    (shown,) = re.findall(r"^```text\n(  with .*?)^```$", PAGE, re.M | re.S)
    assert shown == "".join(f"  {line}\n" for line in sentences.parts(verdict(record)))


def test_the_page_shows_the_closing_lines_of_a_run() -> None:
    def stolen(step: Step, measurement: Measurement) -> Measurement:
        if measurement.after is None or step[1:4] != ("pair", 3, 1):
            return measurement
        return measurement._replace(after=measurement.after._replace(cpu_steal=9999.0))

    record = start(seed=4711, host="redis-1", seconds=10)
    begun = record.start._replace(load="redis-benchmark -t get -n 5000000", load_on="host")
    record = run(noisy(0.07, 0.03, name="get"), stolen, record._replace(start=begun))
    ending = sentences.Ending(
        kept=True,
        tested=("clocksource.source", "network_stack.slow_start_after_idle"),
        untested=(
            f"network_stack.somaxconn: {CONCERNS['network_stack'].unfelt('somaxconn')}",
            "clocksource.tsc_reliable: the kernel takes it at its next boot",
        ),
    )
    content = document.content(record, verdict(record), ending)
    assert f"`{proven.proof_of(content).says()}`" in PAGE
    (shown,) = re.findall(r"^```text\n(PROVE  redis-1.*?)^```$", PAGE, re.M | re.S)
    assert shown == "".join(f"{line}\n" for line in sentences.block(record, verdict(record), ending))
