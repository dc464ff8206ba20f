# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stored wanted on the host, over runs, modules and versions."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns import registry
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.requests import (
    restore_requests,
    stored_requests,
    tune_requests,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.result import contract
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.run import Conditions, run
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.session import Origin
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.facts import Facts
from ansible_collections.nearmetal.ec2.plugins.module_utils._memory.stored import as_data, stored_of, to_store
from ansible_collections.nearmetal.ec2.plugins.module_utils._plan import Finding, Plan, Wanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.concern import Concern
from ansible_collections.nearmetal.ec2.plugins.modules import clocksource, restore, tune

from tests.support.fake_kernel import CLOCK, FakeKernel
from tests.support.hosts import files_of

Call = Callable[..., Dict[str, Any]]
CURRENT = f"{CLOCK}/current_clocksource"
STORED = "var/lib/nearmetal/wanted.json"


def _second(_facts: Facts, wanted: Wanted) -> Plan:
    return Plan(findings=(Finding("second", "level", "ok", "as it is", wanted=wanted.get("level")),))


@pytest.fixture
def host(tmp_path: Path) -> FakeKernel:
    return FakeKernel(tmp_path, files_of("xen_hvm"))


@pytest.fixture
def second(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second concern, for which everything is as wanted."""
    concern = Concern("second", {"level": {"type": "int"}}, ("platform",), _second)
    monkeypatch.setattr(registry, "CONCERNS", {**registry.CONCERNS, concern.name: concern})
    monkeypatch.setattr(
        "ansible_collections.nearmetal.ec2.plugins.module_utils._engine.requests.CONCERNS", registry.CONCERNS
    )


def content(host: FakeKernel) -> Dict[str, Any]:
    concerns: Dict[str, Any] = json.loads((Path(host.root) / STORED).read_text())["concerns"]
    return concerns


def files(host: FakeKernel) -> Dict[str, bytes]:
    root = Path(host.root)
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file() and path.name != "lock"}


def statuses(result: Dict[str, Any], concern: str) -> List[str]:
    return [finding["status"] for finding in result["findings"] if finding["concern"] == concern]


def test_stored_wanted_is_readable_by_root_alone(host: FakeKernel, call: Call) -> None:
    checked = call(tune.main, host, check=True, workload="base")
    assert not (Path(host.root) / STORED).exists()
    applied = call(tune.main, host, workload="base")
    assert checked["diff"] == applied["diff"]
    assert applied["diff"]["after"]["wanted"]["clocksource"]["source"] == "auto"
    assert stat.S_IMODE((Path(host.root) / STORED).stat().st_mode) == 0o600
    kept = content(host)["clocksource"]
    assert kept["options"]["source"] == "auto"
    assert kept["by"]["source"] == "workload"
    assert kept["run"] == "tune, workload base"


def test_a_second_run_writes_nothing(host: FakeKernel, call: Call) -> None:
    call(tune.main, host, workload="base")
    before, written = files(host), (Path(host.root) / STORED).stat().st_mtime_ns
    assert not call(tune.main, host, workload="base")["changed"]
    assert not call(tune.main, host, check=True, concerns={"clocksource": {"source": "tsc"}}).get("failed")
    assert files(host) == before
    assert (Path(host.root) / STORED).stat().st_mtime_ns == written


def test_a_host_with_the_wanted_values_only_stores_them(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("nitro"))
    checked = call(clocksource.main, host, check=True, source="auto", persist=False)
    assert [action["what"] for action in checked["actions"]] == ["wanted"]
    assert checked["msg"] == "clocksource: as wanted"
    first = call(clocksource.main, host, source="auto", persist=False)
    assert set(content(host)) == {"clocksource"}
    assert [checked["changed"], first["changed"]] == [False, False], "a note of ours is no change of the host"
    assert not call(clocksource.main, host, source="auto", persist=False)["actions"]


def test_the_module_and_tune_share_it(host: FakeKernel, call: Call) -> None:
    call(clocksource.main, host, source="tsc")
    assert not call(tune.main, host, concerns={"clocksource": {"source": "tsc"}})["changed"]
    assert content(host)["clocksource"]["run"] == "module clocksource"


@pytest.mark.parametrize("name", ["xen_pv", "graviton"])
def test_wanted_stays_where_this_size_has_nothing_to_do(tmp_path: Path, call: Call, name: str) -> None:
    """The same disk may be started as another type tomorrow."""
    host = FakeKernel(tmp_path, files_of(name))
    call(clocksource.main, host, source="auto")
    assert content(host)["clocksource"]["options"]["source"] == "auto"


@pytest.mark.parametrize("name", ["container", "not_ec2"])
def test_a_refused_host_keeps_no_file(tmp_path: Path, call: Call, name: str) -> None:
    host = FakeKernel(tmp_path, files_of(name))
    assert not call(clocksource.main, host, source="auto")["changed"]
    assert not (Path(host.root) / "var/lib/nearmetal").exists()


@pytest.mark.usefixtures("second")
def test_a_concern_left_out_stays_and_is_listed(host: FakeKernel, call: Call) -> None:
    call(tune.main, host, concerns={"clocksource": {"source": "tsc"}, "second": {"level": 3}})
    later = call(tune.main, host, concerns={"second": {"level": 3}})
    assert not later["changed"]
    assert statuses(later, "clocksource") == ["advice"]
    reason = next(finding["reason"] for finding in later["findings"] if finding["concern"] == "clocksource")
    assert "the run of tune of 20" in reason
    assert "prune: true" in reason
    assert set(content(host)) == {"clocksource", "second"}
    assert (Path(host.root) / CURRENT.lstrip("/")).read_text() == "tsc\n"


@pytest.mark.usefixtures("second")
def test_prune_takes_back_what_is_left_out(host: FakeKernel, call: Call) -> None:
    call(tune.main, host, concerns={"clocksource": {"source": "tsc"}, "second": {"level": 3}})
    checked = call(tune.main, host, check=True, prune=True, concerns={"second": {"level": 3}})
    assert checked["diff"]["after"]["clock"] == {"current": "xen"}
    pruned = call(tune.main, host, prune=True, concerns={"second": {"level": 3}})
    assert pruned["diff"] == checked["diff"]
    assert (Path(host.root) / CURRENT.lstrip("/")).read_text() == "xen\n"
    assert set(content(host)) == {"second"}
    assert not call(tune.main, host, prune=True, concerns={"second": {"level": 3}})["changed"]


@pytest.mark.usefixtures("second")
def test_restore_of_one_concern_forgets_only_that(host: FakeKernel, call: Call) -> None:
    call(tune.main, host, concerns={"clocksource": {"source": "tsc"}, "second": {"level": 3}})
    assert call(restore.main, host, concerns=["second"])["actions"]
    assert set(content(host)) == {"clocksource"}
    call(restore.main, host)
    assert not (Path(host.root) / "var/lib/nearmetal").exists()


def test_a_failed_setting_is_not_kept(host: FakeKernel, call: Call) -> None:
    call(tune.main, host, concerns={"clocksource": {"source": "hpet", "persist": False}})
    host.moods[CURRENT] = "EIO"
    assert call(tune.main, host, concerns={"clocksource": {"source": "tsc"}})["failed"]
    assert content(host)["clocksource"]["options"]["source"] == "hpet"


@pytest.mark.usefixtures("second")
def test_rollback_takes_the_whole_run_out_of_it(host: FakeKernel, call: Call) -> None:
    call(tune.main, host, concerns={"second": {"level": 3}})
    before = files(host)
    host.moods[CURRENT] = "EIO"
    options = {"clocksource": {"source": "tsc"}, "second": {"level": 4}}
    assert call(tune.main, host, concerns=options, on_failure="rollback")["failed"]
    failures = f"{host.root}/run/nearmetal/failed.json"  # for status
    assert {path: data for path, data in files(host).items() if path != failures} == before


def at_version(host: FakeKernel, version: str, **concerns: Any) -> Dict[str, Any]:
    done = run(
        host,
        lambda known: tune_requests([], concerns, {}, known),
        conditions=Conditions(Origin("tune", version)),
    )
    return contract(done.outcomes)


def test_an_older_and_a_newer_controller_in_turn(host: FakeKernel, call: Call) -> None:
    before = files(host)
    at_version(host, "0.1.0", clocksource={"source": "tsc"})
    at_version(host, "0.2.0", clocksource={"source": "hpet"})
    newer = json.loads((Path(host.root) / STORED).read_text())
    newer["concerns"]["cooling"] = {**newer["concerns"]["clocksource"], "options": {"fans": ["left"]}}
    newer["concerns"]["clocksource"]["options"]["dial"] = "sun"
    (Path(host.root) / STORED).write_text(json.dumps(newer))
    again = at_version(host, "0.1.0", clocksource={"source": "tsc"})
    assert statuses(again, "cooling") == ["advice"]
    assert content(host)["cooling"]["options"] == {"fans": ["left"]}
    assert content(host)["clocksource"]["version"] == "0.1.0"
    run(host, lambda known: restore_requests(None, known))
    assert files(host) == before


def test_a_stored_option_that_was_removed_doesn_t_keep_the_others_from_being_set(host: FakeKernel, call: Call) -> None:
    at_version(host, "0.2.0", network_stack={"netdev_max_backlog": 5000, "conntrack_max": 300000})
    earlier = json.loads((Path(host.root) / STORED).read_text())
    earlier["concerns"]["network_stack"]["options"]["tw_recycle"] = "disabled"
    earlier["concerns"]["network_stack"]["by"]["tw_recycle"] = "user"
    (Path(host.root) / STORED).write_text(json.dumps(earlier))
    backlog = Path(host.root) / "proc/sys/net/core/netdev_max_backlog"
    backlog.write_text("1000\n")
    done = run(host, stored_requests, conditions=Conditions(Origin("unit", "0.3.0")))
    assert contract(done.outcomes)["changed"]
    assert backlog.read_text() == "5000\n"


HOSTILE = {
    "empty": "",
    "no JSON": "{",
    "deep": "[" * 100000,
    "a list": "[]",
    "newer": '{"version": 2, "concerns": {}}',
    "a name with a path": json.dumps({"version": 1, "concerns": {"../x": {}}}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_stops_the_run_in_one_sentence(host: FakeKernel, call: Call, name: str) -> None:
    folder = Path(host.root) / "var/lib/nearmetal"
    folder.mkdir(mode=0o700)
    (Path(host.root) / STORED).write_text(HOSTILE[name])
    before = files(host)
    for main, options in ((clocksource.main, {"source": "tsc"}), (restore.main, {})):
        failed = call(main, host, **options)
        assert failed["failed"]
        assert "/var/lib/nearmetal/wanted.json" in failed["msg"]
        assert "\n" not in failed["msg"]
    assert files(host) == before


def test_an_image_plans_settings_that_the_baked_host_lacked(tmp_path: Path, call: Call) -> None:
    # No cpufreq on the baked host, so nothing to do there, but everything on the metal type of the copy.
    host = FakeKernel(tmp_path, files_of("nitro"))
    call(tune.main, host, bake=True, concerns={"cpu_power": {"governor": "performance"}})
    assert (tmp_path / "etc/systemd/system/nearmetal.service").exists()


def test_a_run_that_decides_the_same_by_other_figures_stores_nothing(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("nitro"))
    memory = tmp_path / "proc/meminfo"
    plenty = memory.read_text()
    wanted = {"hugepages": {"pages": [{"size": "2M", "count": 2000}], "thp": "never"}}
    memory.write_text(plenty.replace("MemAvailable:   7340032", "MemAvailable:   900000"))
    call(tune.main, host, concerns=wanted)
    stored = content(host)["hugepages"]
    assert [row[:2] for row in stored["remembered"]] == [["pages", ""]]
    memory.write_text(plenty.replace("MemAvailable:   7340032", "MemAvailable:   800000"))
    assert not call(tune.main, host, concerns=wanted)["changed"]
    assert content(host)["hugepages"] == stored
    memory.write_text(plenty)
    assert call(tune.main, host, concerns=wanted)["changed"]
    assert content(host)["hugepages"]["remembered"] == []


def test_a_reason_of_any_length_is_read_back() -> None:
    """A NIC with a hundred VLANs had one that nobody could read again, and its concern was never planned at boot."""
    kept = to_store(Wanted({"mtu": 1500}), replan=True, remembered={("mtu", "0000:00:05.0"): "ens5.7 \n\x07" * 400})
    kept = kept._replace(run="tune", version="0.2.0", at="2026-11-27T16:00:00Z")
    assert stored_of(json.loads(json.dumps(as_data(kept)))) == kept
