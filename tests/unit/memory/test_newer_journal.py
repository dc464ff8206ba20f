# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An older controller meets what a newer one set: it says so, does nothing with it, and loses nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.modules import clocksource, restore, tune

from tests.support.fake_kernel import CLOCK, FakeKernel
from tests.support.hosts import files_of

Call = Callable[..., Dict[str, Any]]
CURRENT = f"{CLOCK}/current_clocksource"
JOURNAL = "var/lib/nearmetal/journal.json"
THEIRS = {
    "knob": "fans",
    "what": "cooling.fans",
    "where": "left",
    "original": {"rpm": [1, 2]},
    "ours": [{"rpm": None}],
    "boot_id": "11111111-2222-3333-4444-555555555555",
}


@pytest.fixture
def host(tmp_path: Path) -> FakeKernel:
    return FakeKernel(tmp_path, files_of("xen_hvm"))


def add(host: FakeKernel, concern: str) -> Dict[str, Any]:
    """What a newer nearmetal writes beside our entries."""
    place = Path(host.root) / JOURNAL
    journal = json.loads(place.read_text())
    theirs = {"concern": concern, **THEIRS}
    journal["entries"].append(theirs)
    place.write_text(json.dumps(journal))
    return theirs


def entries(host: FakeKernel) -> List[Dict[str, Any]]:
    found: List[Dict[str, Any]] = json.loads((Path(host.root) / JOURNAL).read_text())["entries"]
    return found


def current(host: FakeKernel) -> str:
    return (Path(host.root) / CURRENT.lstrip("/")).read_text().strip()


@pytest.mark.parametrize("concern", ["clocksource", "cooling"])
def test_a_tune_run_keeps_it(host: FakeKernel, call: Call, concern: str) -> None:
    call(clocksource.main, host, source="tsc")
    theirs = add(host, concern)
    done = call(tune.main, host, concerns={"clocksource": {"source": "hpet"}})
    assert current(host) == "hpet"
    assert theirs in entries(host)
    told = [finding["reason"] for finding in done["findings"] if "cooling.fans" in finding["reason"]]
    assert len(told) == (1 if concern == "clocksource" else 0)


def test_restore_takes_back_the_rest_and_says_what_stays(host: FakeKernel, call: Call) -> None:
    call(clocksource.main, host, source="tsc")
    theirs = add(host, "cooling")
    failed = call(restore.main, host)
    assert failed["failed"]
    assert "cooling.fans" in failed["errors"]["cooling"]
    assert "nearmetal restore cooling" in failed["errors"]["cooling"]
    assert current(host) == "xen"
    assert entries(host) == [theirs]


def test_a_concern_that_is_half_theirs_stays_whole(host: FakeKernel, call: Call) -> None:
    call(clocksource.main, host, source="tsc")
    before, theirs = entries(host), add(host, "clocksource")
    for failed in (call(restore.main, host), call(clocksource.main, host, state="restored")):
        assert "cooling.fans" in failed["errors"]["clocksource"]
        assert current(host) == "tsc"
        assert entries(host) == [*before, theirs]
    call(tune.main, host, concerns={"clocksource": {"source": "xen"}})
    assert current(host) == "xen"
    assert theirs in entries(host)


def test_the_command_on_the_host_says_so_too(host: FakeKernel, call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    call(clocksource.main, host, source="tsc")
    add(host, "clocksource")
    assert command(["restore"], host) == 1
    assert "cooling.fans" in capsys.readouterr().out
    assert command(["status"], host) == 0
    assert "cooling.fans" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("what", "where"),
    [
        ("files", "/etc/udev/rules.d/91-nearmetal-cooling.conf"),
        ("files", "/etc/systemd/system/nearmetal-cooling.path"),
        ("files", "/usr/local/sbin/nearmetal-cooling"),
        ("sysctl", "vm.swappiness"),
    ],
)
def test_a_place_that_only_a_newer_one_knows_is_kept_too(host: FakeKernel, call: Call, what: str, where: str) -> None:
    call(clocksource.main, host, source="tsc")
    place = Path(host.root) / JOURNAL
    journal = json.loads(place.read_text())
    theirs = {"concern": "cooling", **THEIRS, "what": what, "where": where, "original": None, "ours": ["60"]}
    place.write_text(json.dumps({**journal, "entries": [*journal["entries"], theirs]}))
    assert "failed" not in call(tune.main, host, concerns={"clocksource": {"source": "hpet"}})
    failed = call(restore.main, host)
    assert where in failed["errors"]["cooling"]
    assert current(host) == "xen"
    assert entries(host) == [theirs]
    assert not (Path(host.root) / where.lstrip("/")).exists()
