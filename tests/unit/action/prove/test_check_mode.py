# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check mode of prove: it says what a run would compare and how long it may take, and changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Set

import pytest
from ansible_collections.nearmetal.ec2.plugins.modules import tune

from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import fresh
from tests.support.prove.experiments import BOTH, Call, Steps, files
from tests.support.prove.plays import Play


def test_it_says_what_would_be_compared_and_how_long_it_may_take(host: FakeKernel, play: Play, tmp_path: Path) -> None:
    before = files(host)
    result = play(check=True, command="exit 1", settle=10, seconds=10, each=True, health="exit 1")
    assert result["msg"] == (
        "db-1  would compare untuned with tuned in clocksource.source; some 220 measurements, about 73 min, for a gain"
        " of 5 % in noise of 2 %, at most 1101, about 6 h 07 min, if each takes 20 s with settling, without switches"
        " and repetitions; nothing was switched"
    )
    assert (result["changed"], result["tested"], play.steps) == (False, ["clocksource.source"], ["plan"])
    assert (host.written, files(host), (tmp_path / "report").exists()) == ([], before, False)
    assert play.said[0].startswith("PROVE  db-1  would compare untuned with tuned in clocksource.source")
    play(check=True, command="true", programs=["redis-servr"])
    assert "  no process runs of redis-servr: prove_programs names those that serve the load" in play.said
    nothing = play(check=True, command="true", tune={"concerns": {"clocksource": {"source": "xen"}}})
    assert nothing["msg"].startswith("nothing differs: ")
    assert play(check=True, command="true", load_on="client-9")["failed"]
    assert host.written == []


def test_a_record_is_left_as_it_is(host: FakeKernel, play: Play) -> None:
    lost: Dict[str, Any] = {"unreachable": True, "msg": "connection reset"}
    play.before_step = lambda number: lost if number == 6 else None
    path = Path(play(command="echo ops 1 1/s larger")["msg"].rpartition(" ")[2])
    play.before_step = lambda _number: None
    torn = path.read_bytes() + b'{"kind":"mea'
    path.write_bytes(torn)
    assert play(check=True, resume=str(path))["tested"] == ["clocksource.source"]
    assert path.read_bytes() == torn


def names(untested: "list[str]") -> Set[str]:
    return {text.split(":")[0] for text in untested}


@pytest.mark.parametrize("tuned", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {"tune": BOTH},
        {"tune": {"workload": ["in_memory_database"]}},
        {"tune": {"workload": ["web"]}, "against": {"workload": ["in_memory_database"]}},
        {"tune": BOTH, "only": ["memory.swappiness"]},
    ],
)
def test_it_foretells_what_a_run_compares(options: Dict[str, Any], tuned: bool, tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path / "big", "nitro_big")
    if tuned:
        call(tune.main, host, **options["tune"])
    steps = Steps(call, host)
    host.written.clear()
    before = files(host)
    foretold = steps("plan", abandon_after=0, **options)["answer"]
    assert (host.written, files(host)) == ([], before)
    begun = steps("begin", abandon_after=0, **options)["answer"]
    assert set(foretold["tested"]) == set(begun["tested"])
    assert names(foretold["untested"]) >= names(begun["untested"]) - names(begun["tested"])
