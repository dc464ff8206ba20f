# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Some writes change another knob: the scheduler changes nr_requests, a governor the preference.

The original of that knob is its value before the write.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.modules import restore, tune

from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import fresh
from tests.unit.memory.test_elements import state, tune_killed

Call = Callable[..., Dict[str, Any]]
SCHEDULER = {"scheduler": "mq-deadline", "method": "runtime"}
REQUESTS = {"nr_requests": 64, "method": "runtime"}
JOURNAL = "var/lib/nearmetal/journal.json"


def requests(host: FakeKernel) -> Dict[str, str]:
    places = Path(host.root).glob("sys/devices/**/queue/nr_requests")
    return {str(place): place.read_text().strip() for place in places}


@pytest.fixture(params=["nitro_old_kernel", "nitro_big", "metal"])
def host(request: pytest.FixtureRequest, tmp_path: Path) -> FakeKernel:
    return fresh(tmp_path, request.param)


@pytest.mark.parametrize("second", [{**SCHEDULER, **REQUESTS}, REQUESTS], ids=["kept", "dropped"])
def test_requests_go_back_to_the_value_before_scheduler_and_requests(
    host: FakeKernel, call: Call, second: Dict[str, Any]
) -> None:
    before = state(host)
    for options in (SCHEDULER, second):
        done = call(tune.main, host, concerns={"block_storage": options})
        assert not done.get("failed"), done["msg"]
        assert not call(tune.main, host, concerns={"block_storage": options})["changed"]
    assert not call(restore.main, host).get("failed")
    assert state(host) == before


def test_requests_for_which_another_scheduler_has_no_room_come_back(tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "xen_hvm")
    for place in requests(host):
        Path(place).write_text("60\n")
    before = state(host)
    call(tune.main, host, concerns={"block_storage": {"scheduler": "none"}})
    assert set(requests(host).values()) == {"32"}
    assert not call(restore.main, host).get("failed")
    assert state(host) == before


def test_a_scheduler_alone_does_not_report_requests_and_takes_them_back(host: FakeKernel, call: Call) -> None:
    before = state(host)
    done = call(tune.main, host, concerns={"block_storage": SCHEDULER})
    assert "nr_requests" not in {action["knob"] for action in done["actions"]}
    assert not call(restore.main, host).get("failed")
    assert state(host) == before


@pytest.mark.parametrize("writes", [1, 2])
def test_killed_between_the_scheduler_and_what_it_set_again(tmp_path: Path, call: Call, writes: int) -> None:
    host = fresh(tmp_path, "metal")
    before = state(host)
    assert tune_killed(host, {"block_storage": {**SCHEDULER, **REQUESTS}}, writes)
    assert "256" in requests(host).values()
    call(tune.main, host, concerns={"block_storage": REQUESTS})
    assert not call(restore.main, host).get("failed")
    assert state(host) == before


def test_requests_that_somebody_set_after_the_scheduler_are_left_alone(tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "metal")
    call(tune.main, host, concerns={"block_storage": SCHEDULER})
    for place in requests(host):
        Path(place).write_text("300\n")
    restored = call(restore.main, host)
    assert "somebody set it to 300" in " ".join(finding["reason"] for finding in restored["findings"])
    assert set(requests(host).values()) == {"300"}


def test_a_preference_that_a_governor_fixed_goes_back_to_what_was_before_it(tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "metal")
    before = state(host)
    for options in ({"governor": "performance"}, {"governor": "powersave", "energy_performance_preference": "power"}):
        done = call(tune.main, host, concerns={"cpu_power": {**options, "method": "runtime"}})
        assert not done.get("failed"), done["msg"]
    assert not call(restore.main, host).get("failed")
    assert state(host) == before


def take_offline(host: FakeKernel) -> None:
    for cpu in range(8, 16):
        host.write_value(f"/sys/devices/system/cpu/cpu{cpu}/online", "0\n")


@pytest.mark.parametrize("control", [True, False], ids=["smt/control", "single CPUs"])
@pytest.mark.parametrize("named", [True, False], ids=["named", "all"])
def test_preferences_go_back_before_smt_takes_their_cpus_offline_again(
    tmp_path: Path, call: Call, control: bool, named: bool
) -> None:
    host = fresh(tmp_path, "metal")
    host.write_value("/sys/devices/system/cpu/smt/control", "off\n")
    if not control:
        (tmp_path / "sys/devices/system/cpu/smt/control").unlink()
    preference = {"energy_performance_preference": "power", "method": "runtime"}
    threads = {"threads": "enabled", "method": "runtime"}
    before = state(host)
    for concerns in ({"smt": threads, "cpu_power": preference}, {"smt": threads}):
        done = call(tune.main, host, concerns=concerns)
        assert not done.get("failed"), done["msg"]
        if "cpu_power" in concerns:  # somebody switches it off, so smt is the last concern to be changed
            host.write_value("/sys/devices/system/cpu/smt/control", "off\n") if control else take_offline(host)
    done = call(restore.main, host, concerns=["smt", "cpu_power"] if named else None)
    assert not done.get("failed"), done["msg"]
    assert not (tmp_path / JOURNAL).exists()
    assert state(host) == before


@pytest.mark.parametrize("cpu", [1, 9], ids=["first thread", "second thread"])
def test_smt_goes_back_although_a_cpu_was_taken_offline_between_two_runs(tmp_path: Path, call: Call, cpu: int) -> None:
    host = fresh(tmp_path, "metal")
    host.write_value("/sys/devices/system/cpu/smt/control", "off\n")
    before = state(host)
    online = f"sys/devices/system/cpu/cpu{cpu}/online"
    threads = {"threads": "enabled", "method": "runtime"}
    for changed in (True, False):  # somebody's single CPU is left alone
        done = call(tune.main, host, concerns={"smt": threads})
        assert done["changed"] == changed, done["msg"]
        host.write_value(f"/{online}", "0\n")
    done = call(restore.main, host)
    assert not done.get("failed"), done["msg"]
    assert not (tmp_path / JOURNAL).exists()
    assert (tmp_path / online).read_text() == "0\n"
    if cpu == 1:  # smt/control took the second threads offline
        host.write_value(f"/{online}", "1\n")
    assert state(host) == before


@pytest.mark.parametrize("at", [17, 21, 27, 31])
def test_a_preference_that_a_governor_fixed_goes_back_although_its_cpu_went_offline_before_it_was_read(
    tmp_path: Path, call: Call, at: int
) -> None:
    host = fresh(tmp_path, "metal")
    before, written = state(host), []

    def write(path: str, text: str) -> None:
        written.append(path)
        if len(written) == at:
            host.cpus.take("/sys/devices/system/cpu/cpu3/online", "0\n")
        FakeKernel.write_value(host, path, text)

    host.write_value = write
    call(tune.main, host, concerns={"cpu_power": {"governor": "performance", "max_exit_latency_us": 10}})
    assert len(written) >= at
    del host.write_value
    assert not call(restore.main, host).get("failed")
    host.write_value("/sys/devices/system/cpu/cpu3/online", "1\n")
    restored = call(restore.main, host)
    assert not restored.get("failed"), restored["msg"]
    assert "absent → absent" not in restored["msg"]
    assert state(host) == before
    assert not (tmp_path / JOURNAL).exists()


@pytest.mark.parametrize("after", [8, 16])
def test_a_preference_that_a_killed_run_left_fixed_goes_back_although_its_cpu_was_offline_at_the_restore(
    tmp_path: Path, call: Call, after: int
) -> None:
    host = fresh(tmp_path, "metal")
    before = state(host)
    assert tune_killed(host, {"cpu_power": {"governor": "performance", "method": "runtime"}}, after)
    for online in ("0\n", "1\n"):
        host.write_value("/sys/devices/system/cpu/cpu3/online", online)
        assert not call(restore.main, host).get("failed")
    assert state(host) == before
    assert not (tmp_path / JOURNAL).exists()


MIN_FREE = "proc/sys/vm/min_free_kbytes"


@pytest.mark.parametrize("name", ["nitro_big", "metal"], ids=["6.1", "5.14"])
@pytest.mark.parametrize(("original", "thp", "first"), [("never", "always", 16384), ("always", "never", 30000)])
@pytest.mark.parametrize("names", [["hugepages", "memory"], ["memory", "hugepages"]], ids="-".join)
@pytest.mark.parametrize("together", [True, False])
def test_memory_kept_free_which_huge_pages_move_goes_back_in_every_order(
    tmp_path: Path, call: Call, name: str, original: str, thp: str, first: int, names: List[str], together: bool
) -> None:
    host = fresh(tmp_path, name)
    host.write_value("/sys/kernel/mm/transparent_hugepage/enabled", f"{original}\n")
    host.write_value(f"/{MIN_FREE}", f"{first}\n")
    before = state(host)
    wanted = {"hugepages": {"thp": thp}, "memory": {"min_free_kbytes": 40000}}
    for concerns in [wanted] if together else [{concern: wanted[concern]} for concern in reversed(names)]:
        done = call(tune.main, host, concerns=concerns)
        assert not done.get("failed"), done["msg"]
    assert not together or (tmp_path / MIN_FREE).read_text() == "40000\n"
    for concerns in [names] if together else [[concern] for concern in names]:
        assert not call(restore.main, host, concerns=concerns).get("failed")
    assert state(host) == before
    assert not (tmp_path / JOURNAL).exists()


@pytest.mark.parametrize("name", ["nitro_big", "metal"], ids=["6.1", "5.14"])
def test_memory_kept_free_as_wanted_stays_when_huge_pages_end(tmp_path: Path, call: Call, name: str) -> None:
    host = fresh(tmp_path, name)
    before = state(host)
    wanted = {"hugepages": {"thp": "never"}, "memory": {"min_free_kbytes": 67584}}
    assert [call(tune.main, host, concerns=wanted)["changed"] for _again in range(2)] == [True, False]
    assert (tmp_path / MIN_FREE).read_text() == "67584\n"
    assert not call(restore.main, host).get("failed")
    assert state(host) == before


@pytest.mark.parametrize("name", ["nitro_big", "metal"], ids=["6.1", "5.14"])
@pytest.mark.parametrize("given", [{"thp": "never"}, {"thp_defrag": "never"}], ids=["wanted", "unmanaged"])
def test_one_run_sets_the_memory_kept_free_to_which_the_huge_pages_that_it_takes_back_had_raised_it(
    tmp_path: Path, call: Call, name: str, given: Dict[str, str]
) -> None:
    """The number went back with them, and only a second run set it."""
    host = fresh(tmp_path, name)
    host.write_value("/sys/kernel/mm/transparent_hugepage/enabled", "never\n")
    host.write_value(f"/{MIN_FREE}", "16384\n")
    before = state(host)
    call(tune.main, host, concerns={"hugepages": {"thp": "always"}})
    assert (tmp_path / MIN_FREE).read_text() == "67584\n"
    wanted = {"hugepages": given, "memory": {"min_free_kbytes": 67584}}
    promised = call(tune.main, host, concerns=wanted, check=True)
    assert "vm.min_free_kbytes" in [action["where"] for action in promised["actions"] if action["concern"] == "memory"]
    call(tune.main, host, concerns=wanted)
    assert (tmp_path / MIN_FREE).read_text() == "67584\n"
    assert not call(tune.main, host, concerns=wanted)["changed"]
    assert not call(restore.main, host).get("failed")
    assert state(host) == before


def test_interrupts_that_the_way_back_of_rings_moves_go_back_to_where_they_were(tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "nitro_big")
    host.nics.hints["ens5"] = "3"
    before = state(host)
    call(tune.main, host, concerns={"network_stack": {"rings": {"rx": 4096}}, "network_irq": {"policy": "spread"}})
    for concern in ("network_irq", "network_stack"):
        restored = call(restore.main, host, concerns=[concern])
        assert not restored.get("failed"), restored["msg"]
    assert state(host) == before
    assert not (tmp_path / JOURNAL).exists()


def test_a_failure_takes_back_what_the_scheduler_set_again(tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "metal")
    for place in requests(host):
        Path(place).write_text("900\n")
    before = state(host)
    host.moods["/sys/block/nvme2n1/queue/scheduler"] = "EIO"
    failed = call(tune.main, host, concerns={"block_storage": {**SCHEDULER, **REQUESTS}})
    assert failed["failed"]
    assert state(host) == before
    assert not (tmp_path / JOURNAL).exists()
