# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module records this machine with a perf that answers what a real one did, and leaves nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Callable, Dict

import jsonschema
import pytest
import yaml
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.host import refusals
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.module_utils._profile import profiling, recording
from ansible_collections.nearmetal.ec2.plugins.modules import profile
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._profile import document, stacks

from tests.support.prove.perf import Perf
from tests.support.report.schema import strict

Call = Callable[..., Dict[str, Any]]
SCHEMA: Dict[str, Any] = json.loads(Path(document.__file__).with_name("profile.schema.json").read_text("utf-8"))


class Root(WritableHost):
    """This machine's user may do what root may."""

    def is_root(self) -> bool:
        return True


@pytest.fixture
def perf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Perf:
    return Perf(tmp_path, monkeypatch)


def test_a_host_is_recorded_and_nothing_is_left(call: Call, perf: Perf) -> None:
    result = call(profile.main, Root(), seconds=1)
    assert (result["changed"], result["event"], result["samples"], result["idle"]) == (False, "cpu-clock", 30, 0)
    assert result["msg"].startswith("profile: 30 samples in 1 s; most in ")
    assert [row["name"] for row in result["top"]][:1] == [result["msg"].rpartition("most in ")[2].split()[0]]
    assert result["notes"][0].startswith("no CPU counters here")
    assert result["counters"]["cpus"] > 0
    assert sum(stacks.unpacked(result["stacks"]).own) == 30
    assert list(perf.runs.iterdir()) == []
    assert "record -a -g -B -N -o perf.data -F 99 -e cpu-clock -- sleep 1\n" in perf.log.read_text()


def test_the_document_is_what_its_schema_says(call: Call, perf: Perf) -> None:
    complete = call(profile.main, Root(), seconds=1, waits=True)
    documents = [written(complete)]
    perf.remove()
    documents.append(written(call(profile.main, Root(), seconds=1)))
    for found in documents:
        jsonschema.Draft202012Validator(SCHEMA).validate(found)
        jsonschema.Draft202012Validator(strict(SCHEMA)).validate(found)
    result = SCHEMA["properties"]["result"]
    assert set(result["properties"]) == set(documents[0]["result"])
    written_beside = {"page": {}, "folded": {}, "document": {}, "stacks": {}}
    assert documented(yaml.safe_load(profile.RETURN)) == {**described(result), **written_beside}
    for change in ({"samples": -1}, {"busy": 1.5}, {"advice": [{}]}, {"top": None}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.Draft202012Validator(SCHEMA).validate(written({**complete, **change}))


def written(result: Dict[str, Any]) -> Any:
    """The document as a program reads it; the controller takes the stacks out of it."""
    known = {name: value for name, value in result.items() if name != "stacks"}
    return json.loads(document.content("redis-1", known, 1_795_000_000.0))


def described(schema: Dict[str, Any]) -> Any:
    """The keys of a schema, with those below each."""
    if schema.get("type") == "array":
        return described(schema["items"])
    return {name: described(value) for name, value in schema.get("properties", {}).items()}


def documented(keys: Dict[str, Any]) -> Any:
    """The same of what a module returns."""
    return {name: documented(key.get("contains", {})) for name, key in keys.items()}


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (
            {"record": "echo 'No permission to enable cpu-clock event.' >&2; exit 255"},
            "perf failed with code 255: No",
        ),
        ({"script": "echo 'file format not supported' >&2; exit 1"}, "perf script failed: file format not supported"),
    ],
)
def test_without_samples_the_rest_is_there(call: Call, perf: Perf, answers: Dict[str, str], said: str) -> None:
    perf.answers(**answers)
    result = call(profile.main, Root(), seconds=1)
    assert result["msg"].startswith(f"profile: no samples, only what the kernel counts: {said}")
    assert result["notes"][0].startswith(said)
    assert result["counters"]["cpus"] > 0
    assert "stacks" not in result
    assert list(perf.runs.iterdir()) == []


def test_what_threads_wait_for_is_asked_for(call: Call, perf: Perf) -> None:
    result = call(profile.main, Root(), seconds=1)
    assert "waits" not in result
    assert "sched" not in perf.log.read_text()
    perf.answers(sched="echo 'Error: tracefs is not mounted' >&2; exit 1")
    result = call(profile.main, Root(), seconds=1, waits=True)
    refused = "for what threads wait isn't known: perf failed with code 1: Error: tracefs is not mounted"
    assert (result["notes"][-1], "waits" in result) == (refused, False)
    assert {row["name"] for row in result["calls"]} >= {"redis-server", "redis-benchmark"}


def test_names_that_nobody_would_hide_again_stay_hidden(call: Call, perf: Perf, tmp_path: Path) -> None:
    (tmp_path / "proc/sys/kernel").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/kptr_restrict").write_text("2\n")
    result = call(profile.main, Root(str(tmp_path)), seconds=1, kernel_names=True)
    assert result["samples"] == 30
    assert result["notes"][-1].startswith("/proc/sys/kernel/kptr_restrict stays 2: no timer would give it back")


def test_a_lost_connection_ends_the_recording(call: Call, perf: Perf, monkeypatch: pytest.MonkeyPatch) -> None:
    perf.answers(record="sleep 60")
    monkeypatch.setattr(profiling, "is_awaited", lambda: False)
    assert call(profile.main, Root(), seconds=60)["msg"] == "perf was stopped, because the run had ended"
    assert list(perf.runs.iterdir()) == []


def test_check_mode_records_nothing(call: Call, perf: Perf) -> None:
    result = call(profile.main, Root(), check=True, seconds=2)
    assert (result["changed"], result["msg"]) == (False, "profile: would record all CPUs for 2 s")
    assert not perf.log.exists()


@pytest.mark.parametrize(
    ("release", "said"),
    [
        ("ID=debian\n", "perf isn't installed: run `apt-get install linux-perf` on the host"),
        ("ID=amzn\n", "perf isn't installed: run `dnf install perf` on the host"),
        (
            "ID=ubuntu\nID_LIKE=debian\n",
            "perf isn't installed: run `apt-get install linux-tools-6.8.0-1021-aws` on the",
        ),
        ("ID=nixos\n", "perf isn't installed, and no package of this distribution is known to have it"),
    ],
)
def test_a_missing_perf_is_named_with_its_package(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: str, said: str
) -> None:
    monkeypatch.setattr(recording, "program_path", lambda _name: None)
    monkeypatch.setattr(refusals, "program_of", lambda _tool: None)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text(release)
    (tmp_path / "proc/sys/kernel").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/osrelease").write_text("6.8.0-1021-aws\n")
    host = Root(str(tmp_path))
    assert call(profile.main, host, check=True)["msg"].startswith(f"profile: would only count for 30 s: {said}")


def test_without_perf_the_rest_is_there(call: Call, perf: Perf) -> None:
    perf.remove()
    result = call(profile.main, Root(), seconds=1)
    assert result["notes"][0].startswith("perf isn't installed")
    assert result["counters"]["seconds"] >= 1
    assert result["changed"] is False


def test_a_host_without_root_or_room_is_refused(call: Call, perf: Perf) -> None:
    class User(WritableHost):
        def is_root(self) -> bool:
            return False

    assert "needs root on the host" in call(profile.main, User())["msg"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "cpu_count", lambda: 10**9)
        assert "has too little room for a recording of up to" in call(profile.main, Root(), seconds=600)["msg"]


@pytest.mark.parametrize("seconds", [0, 0.9, 601, float("inf"), "1e9", True])
def test_a_time_that_is_too_short_or_too_long_is_refused(call: Call, seconds: Any) -> None:
    said = call(profile.main, Root(), seconds=seconds)["msg"]
    assert said.startswith("profile.seconds must be a number from 1 to 600, not ")
