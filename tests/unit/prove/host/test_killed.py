# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host with the unit, whose process is killed after a tuning was kept but before prove ended."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.unit import AGENT, identity
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.host import states
from ansible_collections.nearmetal.ec2.plugins.modules import restore, tune

from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import fresh
from tests.support.prove.experiments import MEMORY, SWAPPINESS, Call, Steps, files, swappiness

PLACED: Dict[str, Any] = {"concerns": {"network_irq": {"policy": "auto"}}}  # which needs the unit
BOTH: Dict[str, Any] = {"concerns": {**PLACED["concerns"], **MEMORY["concerns"]}}
STATE = "run/nearmetal/prove.json"


class Killed(BaseException):
    """The process is dead."""


@pytest.fixture
def big(tmp_path: Path, call: Call) -> FakeKernel:
    host = fresh(tmp_path, "nitro_big")
    call(tune.main, host, **PLACED)
    return host


def killed(*_arguments: object) -> None:
    raise Killed


def keep(steps: Steps, options: Dict[str, Any]) -> None:
    """Keep the tuning, but for the last step."""
    steps("begin", tune=options)
    with pytest.MonkeyPatch.context() as patch, suppress(Killed):
        patch.setattr(states.record, "release", killed)
        steps("keep", tune=options)


def wanted(host: FakeKernel) -> str:
    path = Path(host.root) / "var/lib/nearmetal/wanted.json"
    return path.read_text() if path.exists() else ""


def test_an_agent_of_an_older_version_is_no_reason_to_stay_in_the_experiment(big: FakeKernel, call: Call) -> None:
    present = str(identity(big))
    agent = Path(f"{big.root}{AGENT}")
    agent.write_bytes(agent.read_bytes().replace(present.encode(), f"{present[:-1]}{int(present[-1] == '0')}".encode()))
    before = wanted(big)
    keep(Steps(call, big), BOTH)
    assert (identity(big), swappiness(big)) == (present, "1")
    assert command(["expire", "prove"], big) == 0
    assert (swappiness(big), wanted(big), (Path(big.root) / STATE).exists()) == ("60", before, False)
    assert identity(big) == present, "any version of ours serves"
    assert not call(tune.main, big, **BOTH).get("failed")


def test_the_unit_is_back_where_the_tuning_needs_none(big: FakeKernel, call: Call) -> None:
    before = files(big)
    keep(Steps(call, big), {**MEMORY, "prune": True})
    assert identity(big) is None
    assert command(["expire", "prove"], big) == 0
    found = files(big)
    assert (found[AGENT[1:]], sorted(found)) == (before[AGENT[1:]], sorted(before))


def test_a_concern_restored_meanwhile_is_not_wanted_again(big: FakeKernel, call: Call) -> None:
    before = wanted(big)
    keep(Steps(call, big), BOTH)
    big.moods[SWAPPINESS] = "EINVAL"
    assert command(["expire", "prove"], big) == 1
    assert list(json.loads(wanted(big))["concerns"]) == ["network_irq"], "nobody kept the other"
    assert wanted(big) == before
    assert call(restore.main, big)["failed"]
    del big.moods[SWAPPINESS]
    assert command(["expire", "prove"], big) == 0
    assert (swappiness(big), wanted(big), (Path(big.root) / STATE).exists()) == ("60", "", False)
