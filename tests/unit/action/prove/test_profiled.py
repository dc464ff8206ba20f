# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Both states are profiled after the verdict, and no trouble with perf changes it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from tests.support.fake_kernel import FakeKernel
from tests.support.prove.perf import Perf
from tests.support.prove.plays import CURRENT, Play, current, load

PAGE = Path(__file__).parents[4] / "docs/profile.md"
CLOCK = "db  7 [000] cpu-clock: \\n\\tffffffff81000001 read_hpet ([kernel.kallsyms])\\n\\t    12 main (/db)\\n\\n"
WORK = "db  7 [000] cpu-clock: \\n\\t    11 look_up (/db)\\n\\t    12 main (/db)\\n\\n"


@pytest.fixture
def perf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: FakeKernel) -> Perf:
    found = Perf(tmp_path / "perf", monkeypatch)
    slow = f'[ "$(cat {host.root}{CURRENT})" = tsc ] && clocks=2 || clocks=40'
    count = 'while [ $number -lt $2 ]; do printf "$1"; number=$((number + 1)); done'
    script = f"{slow}; say() {{ number=0; {count}; }}; say '{CLOCK}' $clocks; say '{WORK}' 60"
    found.answers(script=script)
    return found


def test_what_moved_is_named_and_drawn(host: FakeKernel, play: Play, perf: Perf, tmp_path: Path) -> None:
    result = play(command=load(host, 120), soak=0, profile=True)
    assert (result["verdict"]["verdict"], result["kept"], current(host)) == ("better", True, "tsc"), result
    found = result["profile"]
    assert found["says"] == "16 pairs of profiles; 2 of 4 functions have another share when tuned"
    rows = {row["name"]: row for row in found["moved"]}
    assert set(rows) == {"look_up", "read_hpet_[k]"}
    assert (rows["read_hpet_[k]"]["untuned"], rows["read_hpet_[k]"]["tuned"]) == (0.4, 0.0323)
    assert f"db-1  profile: {found['says']}" in play.said
    base = result["record"][: -len(".jsonl")]
    assert found["page"].endswith(f"{Path(base).name}-profile.html")
    assert Path(f"{base}-untuned.folded").read_text() == "db;main;look_up 960\ndb;main;read_hpet_[k] 640\n"
    assert "read_hpet_[k]" in Path(f"{base}-profile.html").read_text()
    measured = [json.loads(line) for line in Path(result["record"]).read_text().splitlines()]
    assert not any("profile" in line.get("phase", "") for line in measured), "it is no measurement"
    steps = "".join("p" if step == "profile" else "." for step in play.steps)
    assert "p" * 32 in steps
    assert list(perf.runs.iterdir()) == []


def test_the_load_begins_when_perf_is_about_to_record(host: FakeKernel, play: Play, perf: Perf) -> None:
    play(command=f"echo loads >>{perf.log}; {load(host, 120)}", soak=0, profile=True)
    _measured, *profiles = perf.log.read_text().split("stat ")
    assert [profile.count("loads\n") for profile in profiles] == [1] * 32


def test_a_perf_that_fails_leaves_the_verdict(host: FakeKernel, play: Play, perf: Perf) -> None:
    perf.answers(record="echo 'no permission' >&2; exit 1")
    result = play(command=load(host, 120), soak=0, profile=True)
    assert (result["verdict"]["verdict"], result["kept"]) == ("better", True)
    assert result["profile"] == {
        "says": "not profiled: perf failed with code 1: no permission",
        "moved": [],
        "advice": [],
    }


def test_an_unhealthy_host_is_taken_back(host: FakeKernel, play: Play, perf: Perf) -> None:
    def third(_number: int) -> "dict[str, object] | None":
        if play.steps.count("profile") < 3:
            return None
        return {"answer": {"unhealthy": "it is down"}} if play.steps[-1] == "profile" else None

    play.before_step = third
    result = play(command=load(host, 120), soak=0, profile=True)
    assert "and isn't healthy: it is down: the host is as it was before" in result["msg"]
    assert (result["failed"], current(host)) == (True, "xen")


def test_a_run_without_perf_does_not_begin(
    host: FakeKernel, play: Play, perf: Perf, monkeypatch: pytest.MonkeyPatch
) -> None:
    perf.remove()
    result = play(command=load(host, 120), soak=0, profile=True)
    assert "perf isn't installed" in result["msg"]
    assert play.steps == ["begin", "back"]


@pytest.mark.parametrize("other", [{"load_on": "controller"}, {"reboot": True}])
def test_it_needs_the_load_on_the_host(play: Play, other: "dict[str, object]") -> None:
    result = play(command="true", profile=True, **other)
    assert result["msg"].startswith("prove.profile needs a load on the host itself, and no reboots")


def test_a_secret_run_is_not_profiled(host: FakeKernel, play: Play, perf: Perf) -> None:
    play.no_log = True
    assert "profile" not in play(command=load(host, 120), soak=0, profile=True)
    assert "profile" not in play.steps


def test_the_example_of_the_page_compares_what_it_names(play: Play, perf: Perf) -> None:
    (text,) = re.findall(r"^```yaml\n(# proof.yml\n.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    shown = yaml.safe_load(text)
    concerns = shown.pop("tune_concerns")
    options = {name[len("prove_") :]: value for name, value in shown.items()}
    result = play(check=True, tune={"concerns": concerns}, **options)
    assert result["tested"] == ["hugepages.thp"]
