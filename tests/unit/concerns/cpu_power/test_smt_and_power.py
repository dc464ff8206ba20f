# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""SMT off and frequency policies: a policy whose CPUs are all offline returns EBUSY, and keeps its governor."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.modules import cpu_power, restore, smt, tune

from tests.support.fake_kernel import FakeKernel, everything
from tests.support.hosts import files_of

Call = Callable[..., Dict[str, Any]]
CPU = "/sys/devices/system/cpu"
CONTROL = f"{CPU}/smt/control"
SMT = {"threads": "disabled"}
POWER = {"governor": "performance", "energy_performance_preference": "performance"}


@pytest.fixture(params=[{}, {CONTROL: None}], ids=["with smt/control", "without"])
def host(request: pytest.FixtureRequest, tmp_path: Path) -> FakeKernel:
    """A metal instance of 8 cores, a policy per thread."""
    return FakeKernel(tmp_path, files_of("metal", request.param))


def governors(host: FakeKernel) -> str:
    """The first letter of each policy's governor, those that are parked too."""
    folder = Path(host.root) / CPU.lstrip("/") / "cpufreq"
    return "".join((folder / f"policy{cpu}/scaling_governor").read_text()[:2] for cpu in range(16))


def test_both_in_one_run_as_check_mode_promised(host: FakeKernel, call: Call) -> None:
    before = everything(host)
    both = {"smt": SMT, "cpu_power": POWER}
    checked = call(tune.main, host, check=True, concerns=both)
    applied = call(tune.main, host, concerns=both)
    assert not applied.get("failed"), applied["msg"]
    assert applied["diff"] == checked["diff"]
    assert governors(host) == "pe" * 8 + "po" * 8
    assert [call(tune.main, host, check=check, concerns=both)["changed"] for check in (True, False)] == [False, False]
    assert not call(restore.main, host).get("failed")
    assert everything(host) == before


@pytest.mark.parametrize("order", [("cpu_power", "smt"), ("smt", "cpu_power"), None])
@pytest.mark.parametrize("threads_first", [True, False])
def test_restore_in_any_order(host: FakeKernel, call: Call, threads_first: bool, order: Any) -> None:
    before = everything(host)
    steps = [(smt.main, SMT), (cpu_power.main, POWER)]
    for main, options in steps if threads_first else steps[::-1]:
        result = call(main, host, **options)
        assert not result.get("failed"), result["msg"]
    for name in order or (None,):
        arguments = {"concerns": [name]} if name else {}
        promised = call(restore.main, host, check=True, **arguments)
        restored = call(restore.main, host, **arguments)
        assert not restored.get("failed"), restored["msg"]
        assert restored["diff"] == promised["diff"]
    assert not any("somebody" in finding["reason"] for finding in restored["findings"])
    if order == ("cpu_power", "smt") and not threads_first:
        # The second threads were offline with our governor when cpu_power was restored.
        assert governors(host) == "po" * 8 + "pe" * 8
        assert call(restore.main, host)["changed"]
    assert everything(host) == before


def test_stored_values_of_offline_cpus_wait_for_those_cpus(host: FakeKernel, call: Call) -> None:
    call(cpu_power.main, host, **POWER)
    call(smt.main, host, **SMT)
    call(restore.main, host, concerns=["cpu_power"])
    again = call(restore.main, host, concerns=["cpu_power"])
    assert not again["changed"]
    reasons = {finding["knob"]: finding["reason"] for finding in again["findings"] if finding["status"] == "advice"}
    assert "policy8" in reasons["governor"]
    assert "restore again" in reasons["governor"]


def test_new_threads_get_the_governor_too_and_lose_it_again(host: FakeKernel, call: Call) -> None:
    before = everything(host)
    call(tune.main, host, concerns={"smt": SMT, "cpu_power": POWER})
    both = {"smt": {"threads": "enabled"}, "cpu_power": POWER}
    checked = call(tune.main, host, check=True, concerns=both)
    applied = call(tune.main, host, concerns=both)
    assert not applied.get("failed"), applied["msg"]
    assert applied["diff"] == checked["diff"]
    assert governors(host) == "pe" * 16
    assert not call(tune.main, host, concerns=both)["changed"]
    restored = call(restore.main, host)
    assert not restored.get("failed"), restored["msg"]
    assert everything(host) == before


def test_a_failure_takes_the_new_threads_offline_again(host: FakeKernel, call: Call) -> None:
    call(smt.main, host, **SMT)
    host.moods[f"{CPU}/cpufreq/policy15/scaling_governor"] = "EIO"
    failed = call(tune.main, host, concerns={"smt": {"threads": "enabled"}, "cpu_power": POWER})
    assert failed["failed"]
    assert "undoing it failed" not in failed["msg"]
    assert governors(host) == "po" * 16
