# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit exports what it knows of its host to node_exporter's textfile collector, where an operator asks for it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.watch import EVERY
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.state_files import METRICS_VARIABLE
from ansible_collections.nearmetal.ec2.plugins.modules import clocksource, restore, tune

from tests.support.fake_kernel import CLOCK, FakeKernel
from tests.support.hosts import files_of

Call = Callable[..., Dict[str, Any]]
DIRECTORY = "/var/lib/textfiles/node-exporter"
WANTED = {"concerns": {"clocksource": {"source": "tsc"}}, "metrics_directory": DIRECTORY}
LOOK = ["reapply", "--if-changed"]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeKernel:
    found = FakeKernel(tmp_path, files_of("xen_hvm"))
    (tmp_path / DIRECTORY[1:]).mkdir(parents=True)
    monkeypatch.setenv(METRICS_VARIABLE, DIRECTORY)  # as the service does
    return found


def file_of(host: FakeKernel) -> Path:
    return Path(host.root) / DIRECTORY[1:] / "nearmetal_host.prom"


def service(host: FakeKernel) -> str:
    return (Path(host.root) / "etc/systemd/system/nearmetal.service").read_text()


def values(host: FakeKernel) -> Dict[str, float]:
    lines = [line for line in file_of(host).read_text().splitlines() if not line.startswith("#")]
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


def test_a_directory_brings_the_unit_and_the_unit_exports(host: FakeKernel, call: Call) -> None:
    assert "no unit" not in call(tune.main, host, check=True, **WANTED)["msg"]
    applied = call(tune.main, host, **WANTED)
    assert not applied.get("failed"), applied["msg"]
    assert f"Environment={METRICS_VARIABLE}={DIRECTORY}\n" in service(host)
    assert f" -{DIRECTORY}\n" in service(host), "the sandbox lets it write there"
    assert not file_of(host).exists(), "a run of tune leaves it to the unit"
    assert command(LOOK, host) == 0
    found = values(host)
    assert found["nearmetal_unit_drifted_settings"] == 0
    assert time.time() - found["nearmetal_unit_export_timestamp_seconds"] < 60
    assert time.time() - found["nearmetal_unit_planned_timestamp_seconds"] < 60
    assert file_of(host).stat().st_mode & 0o777 == 0o644
    again = call(tune.main, host, **WANTED)
    assert not again["changed"]


def test_drift_shows_when_the_file_is_due(host: FakeKernel, call: Call) -> None:
    call(tune.main, host, **WANTED)
    command(LOOK, host)
    (Path(host.root) / CLOCK[1:] / "current_clocksource").write_text("xen\n")
    command(LOOK, host)
    assert values(host)["nearmetal_unit_drifted_settings"] == 0, "the file isn't due yet"
    old = time.time() - EVERY - 1
    os.utime(file_of(host), (old, old))
    command(LOOK, host)
    assert values(host)["nearmetal_unit_drifted_settings"] == 1
    assert values(host)['nearmetal_unit_drift{concern="clocksource",knob="source"}'] == 1


@pytest.mark.parametrize("pruned", [False, True])
def test_restore_and_prune_remove_the_file(host: FakeKernel, call: Call, pruned: bool) -> None:
    call(tune.main, host, **WANTED)
    command(LOOK, host)
    assert file_of(host).exists()
    back = call(tune.main, host, concerns=WANTED["concerns"], prune=True) if pruned else call(restore.main, host)
    assert not back.get("failed"), back["msg"]
    assert not file_of(host).exists()
    assert not (Path(host.root) / "etc/systemd/system/nearmetal.service").exists()
    assert command(LOOK, host) == 0, "a look that was under way"
    assert not file_of(host).exists()


def test_it_stays_when_another_run_or_module_says_nothing_of_it(host: FakeKernel, call: Call) -> None:
    call(tune.main, host, **WANTED)
    call(clocksource.main, host, source="auto")
    left = call(tune.main, host, concerns={"clocksource": {"source": "tsc"}})
    assert DIRECTORY in service(host)
    assert [finding["status"] for finding in left["findings"] if finding["concern"] == "metrics"] == ["advice"]


def test_another_directory_takes_the_old_file_away(host: FakeKernel, call: Call) -> None:
    call(tune.main, host, **WANTED)
    command(LOOK, host)
    other = "/srv/textfiles"
    (Path(host.root) / other[1:]).mkdir(parents=True)
    call(tune.main, host, **{**WANTED, "metrics_directory": other})
    assert not file_of(host).exists()
    assert DIRECTORY not in service(host)


@pytest.mark.parametrize(
    ("directory", "words"),
    [
        ("metrics", "metrics_directory must be the path of a directory"),
        ("/srv/../etc", "metrics_directory must be the path of a directory"),
        ("/srv/a b", "metrics_directory must be the path of a directory"),
        ("/srv/absent", "/srv/absent doesn't exist"),
        ("/srv/link", "/srv/link is a symbolic link"),
        ("/srv/open", "/srv/open can be written by users other than root"),
    ],
)
def test_an_unsafe_directory_is_refused_before_anything_changes(
    host: FakeKernel, call: Call, directory: str, words: str
) -> None:
    srv = Path(host.root) / "srv"
    srv.mkdir(exist_ok=True)
    (srv / "open").mkdir()
    (srv / "open").chmod(0o777)
    (srv / "link").symlink_to("open")
    result = call(tune.main, host, **{**WANTED, "metrics_directory": directory})
    assert result["failed"]
    assert words in result["msg"]
    assert not (Path(host.root) / "var/lib/nearmetal").exists()


def test_a_link_in_the_place_of_the_file_is_replaced_and_not_followed(host: FakeKernel, call: Call) -> None:
    call(tune.main, host, **WANTED)
    aim = Path(host.root) / "etc/passwd"
    aim.write_text("root\n")
    file_of(host).symlink_to(aim)
    command(["reapply"], host)
    assert aim.read_text() == "root\n"
    assert not file_of(host).is_symlink()
