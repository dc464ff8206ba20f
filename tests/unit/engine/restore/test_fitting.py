# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An original that a place can't take as the host is now: a run says so and does the rest, and a later restore has it.

The kernel limits nr_requests without a scheduler to the depth of the hardware queue (blk_mq_tag_update_depth), refuses
energy preferences under the governor performance, and interrupts for CPUs that are all offline.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.modules import restore, tune

from tests.support.fake_kernel import CLOCK, FakeKernel
from tests.support.fresh_host import fresh
from tests.unit.memory.test_elements import state

Call = Callable[..., Dict[str, Any]]
QUEUE = "/sys/block/xvda/queue"
CPU = "/sys/devices/system/cpu"


def tuned(host: FakeKernel, call: Call, **wanted: Any) -> List[str]:
    """Tune twice: the second run has nothing to do. Returns the advice of the first run."""
    promised = call(tune.main, host, check=True, **wanted)
    done = call(tune.main, host, **wanted)
    assert not done.get("failed"), done["msg"]
    assert done.get("actions") == promised.get("actions")
    again = call(tune.main, host, **wanted)
    assert not again.get("failed"), again["msg"]
    assert not again["changed"]
    return [finding["reason"] for finding in done["findings"] if "can't take as it is now" in finding["reason"]]


def word(host: FakeKernel, path: str) -> str:
    return (Path(host.root) / path.lstrip("/")).read_text().strip()


@pytest.mark.parametrize(
    "then", [{"workload": "sap_hana"}, {"concerns": {"block_storage": {"scheduler": "none"}}}], ids=str
)
@pytest.mark.parametrize(
    "first", [{"nr_requests": 16}, {"nr_requests": 64}, {"scheduler": "mq-deadline", "nr_requests": 128}], ids=str
)
@pytest.mark.parametrize("name", ["xen_hvm", "xen_pv"])
def test_requests_for_which_no_room_is_left_are_what_the_kernel_chooses(
    name: str, first: Dict[str, Any], then: Dict[str, Any], tmp_path: Path, call: Call
) -> None:
    host = fresh(tmp_path, name)
    before = state(host)
    tuned(host, call, concerns={"block_storage": first})
    said = tuned(host, call, **then)
    assert (word(host, f"{QUEUE}/scheduler"), word(host, f"{QUEUE}/nr_requests")) == ("mq-deadline [none]", "32")
    assert said == [] or all(
        "before nearmetal it was 64, which the host can't take as it is now" in text for text in said
    )
    assert not call(restore.main, host).get("failed")
    assert state(host) == before


@pytest.mark.parametrize("kept", [{"scheduler": "none"}, {}], ids=["kept", "somebody's"])
def test_requests_under_a_scheduler_that_stays(kept: Dict[str, str], tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "xen_hvm")
    others = {**kept, "rq_affinity": 2}
    tuned(host, call, concerns={"block_storage": {**others, "nr_requests": 16}})
    if not kept:
        host.write_value(f"{QUEUE}/scheduler", "none\n")
        host.write_value(f"{QUEUE}/nr_requests", "16\n")
    (said,) = tuned(host, call, concerns={"block_storage": others})
    assert said.endswith("it gets what the kernel chooses; the journal keeps 64")
    assert word(host, f"{QUEUE}/nr_requests") == "32"
    assert tuned(host, call, concerns={"block_storage": others}) == []


@pytest.mark.parametrize("entry", [True, False])
def test_requests_for_which_the_scheduler_that_comes_back_makes_room(entry: bool, tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "xen_hvm")
    before = state(host)
    tuned(host, call, workload="sap_hana")
    requests = {"disks": [{"device": "xvda", "nr_requests": 512}]} if entry else {"nr_requests": 512}
    tuned(host, call, concerns={"block_storage": requests})
    assert (word(host, f"{QUEUE}/scheduler"), word(host, f"{QUEUE}/nr_requests")) == ("[mq-deadline] none", "512")
    assert not call(restore.main, host).get("failed")
    assert state(host) == before


def test_a_scheduler_that_the_kernel_no_longer_has(tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "xen_hvm")
    host.write_value(f"{QUEUE}/scheduler", "bfq\n")
    tuned(host, call, concerns={"block_storage": {"scheduler": "none", "rq_affinity": 2}})
    (tmp_path / QUEUE.lstrip("/") / "scheduler").write_text("mq-deadline [none]\n")
    host.disks.modules = ()
    (said,) = tuned(host, call, concerns={"block_storage": {"rq_affinity": 2}})
    assert "it was bfq, which the host can't take" in said
    assert word(host, f"{QUEUE}/scheduler") == "[mq-deadline] none"
    assert not call(restore.main, host).get("failed")


def test_a_preference_that_the_next_governor_fixes(tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "metal")
    before = state(host)
    tuned(host, call, concerns={"cpu_power": {"energy_performance_preference": "power"}})
    tuned(host, call, concerns={"cpu_power": {"governor": "performance"}})
    assert word(host, f"{CPU}/cpufreq/policy0/energy_performance_preference") == "performance"
    assert not call(restore.main, host).get("failed")
    after = state(host)
    assert {path for path in after if after[path] != before.get(path)} <= {path for path in after if ".kept" in path}


@pytest.mark.parametrize("offline", ["in the same run", "by hand"])
def test_an_interrupt_whose_cpu_is_offline_stays_where_it_is(offline: str, tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "metal")
    host.write_value("/proc/irq/29/smp_affinity_list", "12\n")
    tuned(host, call, concerns={"network_irq": {"policy": "spread", "irq_cpus": "0-7", "rps": "kernel"}})
    others = {"network_irq": {"rps": "kernel"}}
    if offline == "by hand":
        for cpu in range(8, 16):
            host.write_value(f"{CPU}/cpu{cpu}/online", "0\n")
    (said,) = tuned(
        host, call, concerns={**others, **({"smt": {"threads": "disabled"}} if offline != "by hand" else {})}
    )
    assert "had 12, which the host can't take as it is now: it stays as it is" in said
    restored = call(restore.main, host)
    assert not restored.get("failed"), restored["msg"]


def test_a_clock_source_that_the_kernel_gave_up(tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "xen_hvm")
    host.write_value(f"{CLOCK}/current_clocksource", "hpet\n")
    tuned(host, call, concerns={"clocksource": {"source": "xen"}})
    places = tmp_path / CLOCK.lstrip("/")
    offered = (places / "available_clocksource").read_text().replace("hpet ", "")
    (places / "available_clocksource").write_text(offered)
    restored = call(restore.main, host)
    assert not restored.get("failed"), restored["msg"]
    assert word(host, f"{CLOCK}/current_clocksource") in offered.split()
