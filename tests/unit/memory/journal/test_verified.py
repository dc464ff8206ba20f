# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that was killed between its last write and the record that the values hold: the next run records it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._memory.journal import Journal
from ansible_collections.nearmetal.ec2.plugins.modules import restore, tune

from tests.support.boot_trees import debian
from tests.support.fake_kernel import FakeKernel

Call = Callable[..., Dict[str, Any]]
SOMAXCONN = "proc/sys/net/core/somaxconn"
WANTED: Dict[str, Any] = {
    "clocksource": {"tsc_reliable": "enabled", "source": "hpet"},
    "network_stack": {"somaxconn": 70000},
    "cpu_power": {"governor": "performance", "method": "runtime"},
}


class Killed(BaseException):
    """The process is dead."""


def entries(host: FakeKernel) -> Dict[Any, Any]:
    found = json.loads((Path(host.root) / "var/lib/nearmetal/journal.json").read_text())["entries"]
    return {(entry["what"], entry["where"]): entry for entry in found}


def governors(root: Path) -> List[str]:
    found = sorted(root.glob("sys/devices/system/cpu/cpufreq/policy*/scaling_governor"))
    return [path.read_text() for path in found]


def killed(host: FakeKernel, call: Call, concern: str) -> None:
    def settle(*_arguments: object) -> None:
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Journal, "settle", settle)
        with pytest.raises(Killed):
            call(tune.main, host, concerns={concern: WANTED[concern]})


@pytest.mark.parametrize("concern", ["clocksource", "network_stack"])
def test_the_next_run_leaves_the_journal_of_a_run_that_was_not_killed(tmp_path: Path, call: Call, concern: str) -> None:
    twin, host = debian(tmp_path / "twin"), debian(tmp_path / "host")
    for each in (twin, host):
        (tmp_path / each.root / "etc/sysctl.d").mkdir(exist_ok=True)
    call(tune.main, twin, concerns={concern: WANTED[concern]})
    killed(host, call, concern)
    assert any(not entry["whole"] for entry in entries(host).values())
    assert not call(tune.main, host, concerns={concern: WANTED[concern]}).get("failed")
    assert entries(host) == entries(twin)


def test_a_value_that_somebody_set_meanwhile_is_not_recorded(tmp_path: Path, call: Call) -> None:
    host = debian(tmp_path)
    original = (tmp_path / SOMAXCONN).read_text()
    killed(host, call, "network_stack")
    (tmp_path / SOMAXCONN).write_text("12345\n")
    journal = Journal(host, None)
    journal.verify("network_stack")
    assert not entries(host)["sysctl", "net.core.somaxconn"]["whole"]
    (tmp_path / SOMAXCONN).write_text("70000\n")
    assert call(restore.main, host)["changed"]
    assert (tmp_path / SOMAXCONN).read_text() == original


def test_a_table_is_judged_element_by_element_as_before(tmp_path: Path, call: Call) -> None:
    host = debian(tmp_path)
    original = governors(tmp_path)
    killed(host, call, "cpu_power")
    Journal(host, None).verify("cpu_power")
    table = [entry["whole"] for (what, _where), entry in entries(host).items() if what.startswith("power.")]
    assert table
    assert not any(table)
    assert call(restore.main, host)["changed"]
    assert governors(tmp_path) == original
