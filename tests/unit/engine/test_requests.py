# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that is limited to some knobs does nothing else, and leaves the others as an earlier run stored them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, Sequence, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent import command
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.requests import restore_requests, tune_requests
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.run import Run, plan_run, run
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._memory.stored import StoredWanted
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning import unit

from tests.support import hosts
from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import fresh

# What keeps the named knob over a reboot, or says how it is set, comes with it.
KEPT_WITH_IT = ("persist", "method")


def tune(host: FakeKernel, *workloads: str, check: bool = True, **asked: Any) -> Run:
    concerns: Dict[str, Any] = asked.pop("concerns", {})
    common = {"allow_not_ec2": True}
    return (plan_run if check else run)(
        host, lambda known: tune_requests(workloads, concerns, common, on_host=known, **asked)
    )


def changes(done: Run) -> List[Tuple[str, str]]:
    return [(action.concern, action.knob) for outcome in done.outcomes for action in outcome.plan.actions]


def wanted(host: FakeKernel) -> Dict[str, Any]:
    return {name: dict(stored.options) for name, stored in StoredWanted(host).everything().items()}


@pytest.mark.parametrize("workload", ["in_memory_database", "packet_appliance"])
@pytest.mark.parametrize("name", hosts.names())
def test_each_finding_has_a_run_that_changes_nothing_else(name: str, workload: str, tmp_path: Path) -> None:
    host = FakeKernel(tmp_path, hosts.files_of(name))
    everything = tune(host, workload)
    found = [finding for outcome in everything.outcomes for finding in outcome.plan.findings]
    to_change = {
        (finding.concern, finding.knob)
        for finding in found
        if finding.status == "would_change" and finding.concern != unit.NAME and finding.knob not in KEPT_WITH_IT
    }
    assert to_change or name in ("container", "not_ec2"), "nothing was tested"
    for concern, knob in to_change:
        alone = tune(host, workload, only=[f"{concern}.{knob}"])
        assert [change for change in changes(alone) if change[0] != unit.NAME and change[1] not in KEPT_WITH_IT] == [
            change for change in changes(everything) if change == (concern, knob)
        ]
        assert {change[0] for change in changes(alone)} <= {concern, unit.NAME}


def test_the_other_knobs_stay_as_an_earlier_run_left_them(tmp_path: Path) -> None:
    host = FakeKernel(tmp_path, hosts.files_of("xen_hvm"))
    tune(host, check=False, concerns={"network_stack": {"somaxconn": 9000}, "clocksource": {"source": "tsc"}})
    before = wanted(host)
    asked = {"network_stack": {"somaxconn": 12000, "max_syn_backlog": 12000}, "clocksource": {"source": "xen"}}
    limited = tune(host, check=False, concerns=asked, only=["network_stack.max_syn_backlog"])
    assert not any(outcome.error for outcome in limited.outcomes)
    after = wanted(host)
    assert after["clocksource"] == before["clocksource"]
    assert after["network_stack"] == {**before["network_stack"], "max_syn_backlog": 12000}
    assert changes(tune(host, concerns=asked, only=["network_stack.max_syn_backlog"])) == []
    run(host, lambda known: restore_requests(None, known))
    assert wanted(host) == {}


RULES = "etc/udev/rules.d/90-nearmetal-block_storage.rules"


def of_disks(*entries: Dict[str, Any]) -> Dict[str, Any]:
    return {"block_storage": {"disks": list(entries)}}


def test_a_knob_of_single_devices_is_set_beside_those_that_an_earlier_run_left_there(tmp_path: Path) -> None:
    host = fresh(tmp_path, "metal")
    tune(host, check=False, concerns=of_disks({"kind": "instance_store", "rq_affinity": 2, "read_ahead_kb": 64}))
    asked = of_disks({"kind": "instance_store", "rq_affinity": 0, "nomerges": 2}, {"device": "nvme0n1", "nomerges": 1})
    limited = tune(host, check=False, concerns=asked, only=["block_storage.nomerges"])
    assert {change for change in changes(limited) if change[0] == "block_storage"} == {
        ("block_storage", "nomerges"),
        ("block_storage", "persist"),
    }
    assert wanted(host)["block_storage"]["disks"] == [
        {"kind": "instance_store", "rq_affinity": 2, "read_ahead_kb": 64, "nomerges": 2},
        {"device": "nvme0n1", "nomerges": 1},
    ]
    rules = (tmp_path / RULES).read_text()
    assert '{queue/rq_affinity}="2"' in rules
    assert '{queue/nomerges}="2"' in rules
    assert command.main(["reapply"], host) == 0
    queues = sorted(tmp_path.glob("sys/block/nvme*/queue"))
    values = [[(queue / name).read_text().strip() for name in ("rq_affinity", "nomerges")] for queue in queues]
    assert values == [["1", "1"], ["2", "2"], ["2", "2"]]


def test_a_waiver_of_another_knob_stays_as_an_earlier_run_stored_it(tmp_path: Path) -> None:
    host = fresh(tmp_path, "metal")
    waiver = {"knob": "network_stack.somaxconn", "reason": "measured", "expires": "2999-12-31"}
    asked = {"network_stack": {"somaxconn": 9000, "max_syn_backlog": 9000}}
    tune(host, check=False, concerns=asked, waivers=[waiver])
    tune(host, check=False, concerns=asked, only=["network_stack.max_syn_backlog"])
    assert command.main(["reapply"], host) == 0
    assert (tmp_path / "proc/sys/net/core/somaxconn").read_text().strip() == "4096"


def test_what_says_how_a_knob_is_set_comes_with_it(tmp_path: Path) -> None:
    host = fresh(tmp_path, "metal")
    asked = {"network_irq": {"policy": "spread", "irq_cpus": "2-3", "xps": "auto"}}
    everything = tune(host, concerns=asked).outcomes[0].plan.actions
    (alone,) = tune(host, concerns=asked, only=["network_irq.policy"]).outcomes[0].plan.actions
    assert alone in everything
    assert set(alone.after.values()) == {"2", "3"}
    rest = changes(tune(host, concerns=asked, exclude=["network_irq.policy"]))
    assert [change for change in rest if change[0] != unit.NAME] == [("network_irq", "xps")]


@pytest.mark.parametrize(
    ("only", "knob"), [("smt.threads", "threads"), ("numa", "state"), ("network_stack.somaxconn", "somaxconn")]
)
def test_a_host_without_a_wish_for_what_a_run_is_limited_to_is_left_as_it_is(
    only: str, knob: str, tmp_path: Path
) -> None:
    done = tune(FakeKernel(tmp_path, hosts.files_of("xen_hvm")), "burstable", only=[only])
    ((finding,),) = [outcome.plan.findings for outcome in done.outcomes]
    assert (finding.knob, finding.status) == (knob, "not_applicable")
    assert "neither the workload burstable nor tune_concerns wants it on this host" in finding.reason


@pytest.mark.parametrize(
    ("only", "more", "words"),
    [
        (["smt", "somaxconn"], {}, "'somaxconn'; is network_stack.somaxconn meant?"),
        (["clockssource"], {}, "not 'clockssource'; concerns are clocksource, "),
        (["clockssource"], {}, "is clocksource meant?"),
        (["clock.source"], {}, "not 'clock.source'; is clocksource.source meant?"),
        (["clocksource.persist"], {}, "tune_only[0]: clocksource has no option for 'persist'; it has source"),
        (
            ["clocksource"],
            {"prune": True},
            "tune_only leaves everything else as it is, and tune_prune takes it back",
        ),
    ],
)
def test_a_mistake_is_named(only: Sequence[str], more: Dict[str, Any], words: str, tmp_path: Path) -> None:
    host = FakeKernel(tmp_path, hosts.files_of("xen_hvm"))
    with pytest.raises(NearmetalError) as raised:
        tune(host, concerns={"clocksource": {"source": "auto"}}, only=only, **more)
    assert words in str(raised.value)
