# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables are compared element by element: a run may end inside a table, and somebody may set an element."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.modules import restore, tune

from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import fresh

Call = Callable[..., Dict[str, Any]]
CPU = "sys/devices/system/cpu"
JOURNAL = "var/lib/nearmetal/journal.json"
GOVERNOR = {"cpu_power": {"governor": "performance", "method": "runtime"}}
PREFERENCE = {"cpu_power": {"energy_performance_preference": "balance_power", "method": "runtime"}}

# Name → host, what is tuned, and the files of the table.
TABLES: Dict[str, Tuple[str, Dict[str, Any], str]] = {
    "affinity": ("nitro_big", {"network_irq": {"policy": "spread", "irq_cpus": "0"}}, "proc/irq/*/smp_affinity_list"),
    "rps": (
        "nitro_big",
        {"network_irq": {"rps": "0-1"}},
        "sys/class/net/*/queues/rx-*/rps_cpus",
    ),
    "rfs": ("nitro_burstable", {"network_irq": {"rfs": "32768"}}, "sys/class/net/*/queues/rx-*/rps_flow_cnt"),
    "xps": ("nitro_big", {"network_irq": {"policy": "spread", "xps": "auto"}}, "sys/class/net/*/queues/tx-*/xps_cpus"),
    "governors": ("metal", GOVERNOR, f"{CPU}/cpufreq/policy*/scaling_governor"),
    "idle states": (
        "metal",
        {"cpu_power": {"max_exit_latency_us": 10, "method": "runtime"}},
        f"{CPU}/cpu*/cpuidle/state*/disable",
    ),
    "huge pages": (
        "nitro_big",
        {"hugepages": {"pages": [{"size": "2M", "count": 128}], "method": "runtime"}},
        "sys/devices/system/node/node*/hugepages/*/nr_hugepages",
    ),
    "offline CPUs": ("metal", {"smt": {"threads": "disabled", "method": "runtime"}}, f"{CPU}/online"),
}


class Kill(BaseException):
    """SIGKILL: nothing of the run is left to clean up."""


def host_of(root: Path, name: str) -> FakeKernel:
    host = fresh(root, TABLES[name][0])
    if name == "offline CPUs":
        (root / CPU / "smt/control").unlink()
    return host


def tune_killed(host: FakeKernel, concerns: Dict[str, Any], after: int) -> bool:
    """Kill a tune run after so many writes to kernel files; return whether it got that far."""
    written: List[str] = []
    take = type(host).write_value

    def write(path: str, text: str) -> None:
        take(host, path, text)
        written.append(path)
        if len(written) == after:
            raise Kill

    host.write_value = write
    try:
        with patch_module_args({"concerns": concerns, "_ansible_check_mode": False}):
            tune.main(host)
    except SystemExit:
        return False
    except Kill:
        return True
    finally:
        del host.write_value
    return False


def state(host: FakeKernel) -> Dict[str, str]:
    """Every file of the kernel and of nearmetal, except the delivery of interrupts that may go to several CPUs."""
    root = Path(host.root)
    kept = (".kept", "lock")  # what the fake kernel remembers, and the lock, which stays
    return {
        str(path.relative_to(root)): path.read_text()
        for folder in ("proc", "sys", "etc", "var")
        for path in sorted(root.glob(f"{folder}/**/*"))
        if path.is_file() and path.name not in kept and not path.name.startswith("effective_")
    }


def by_role(host: FakeKernel, call: Call, concerns: Dict[str, Any]) -> None:
    assert not call(restore.main, host).get("failed")


def by_command(host: FakeKernel, call: Call, concerns: Dict[str, Any]) -> None:
    assert command(["restore"], host) == 0


def by_prune(host: FakeKernel, call: Call, concerns: Dict[str, Any]) -> None:
    pruned = call(tune.main, host, concerns={"clocksource": {"persist": False, "source": "tsc"}}, prune=True)
    assert not pruned.get("failed"), pruned["msg"]
    call(restore.main, host)


def by_next_tune(host: FakeKernel, call: Call, concerns: Dict[str, Any]) -> None:
    assert not call(tune.main, host, concerns=concerns).get("failed")
    call(restore.main, host)


@pytest.mark.parametrize(
    ("way", "kills"), [(by_role, (1, 3, 7)), (by_command, (2,)), (by_prune, (2,)), (by_next_tune, (1, 4))]
)
@pytest.mark.parametrize("name", TABLES)
def test_a_run_killed_after_any_write_can_be_restored(
    name: str, way: Callable[..., None], kills: Tuple[int, ...], tmp_path: Path, call: Call
) -> None:
    _kind, concerns, _files = TABLES[name]
    inside = 0
    for number in kills:
        host = host_of(tmp_path / str(number), name)
        before = state(host)
        if not tune_killed(host, concerns, number):
            break
        inside += state(host) != before
        way(host, call, concerns)
        now = state(host)
        assert {path: now.get(path) for path in before} == before
        assert JOURNAL not in now
    assert inside, "no run ended inside the table"


def place(host: FakeKernel, policy: int, name: str = "scaling_governor") -> Path:
    return Path(host.root) / f"{CPU}/cpufreq/policy{policy}/{name}"


def test_foreign_elements_are_left_alone_and_each_is_named(tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "metal")
    call(tune.main, host, concerns=GOVERNOR)
    place(host, 3).write_text("schedutil\n")
    restored = call(restore.main, host)
    [left_alone] = [finding for finding in restored["findings"] if "somebody" in finding["reason"]]
    assert left_alone["reason"] == (
        "somebody set policy3 to schedutil after nearmetal did: left alone; before nearmetal it was powersave"
    )
    assert (left_alone["now"], left_alone["wanted"]) == ({"policy3": "schedutil"}, {"policy3": "powersave"})
    words = [place(host, policy).read_text().strip() for policy in range(16)]
    assert words == ["powersave"] * 3 + ["schedutil"] + ["powersave"] * 12
    assert not (tmp_path / JOURNAL).exists()


def test_the_command_on_the_host_says_what_it_left_alone(tmp_path: Path, call: Call, capsys: Any) -> None:
    host = fresh(tmp_path, "metal")
    call(tune.main, host, concerns=GOVERNOR)
    place(host, 3).write_text("schedutil\n")
    capsys.readouterr()
    assert command(["restore"], host) == 0
    assert (
        "cpu_power.governor: somebody set policy3 to schedutil after nearmetal did: left alone"
        in capsys.readouterr().out
    )


def test_a_second_tune_keeps_what_was_there_before_the_first(tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "metal")
    place(host, 5, "energy_performance_preference").write_text("power\n")
    before = state(host)
    assert tune_killed(host, PREFERENCE, 4)
    assert tune_killed(host, PREFERENCE, 7)
    assert not call(tune.main, host, concerns=PREFERENCE).get("failed")
    assert not call(restore.main, host).get("failed")
    assert state(host) == before


def test_an_element_that_somebody_set_to_the_wanted_value_stays_foreign(tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "metal")
    call(tune.main, host, concerns={"cpu_power": {**PREFERENCE["cpu_power"], "energy_performance_preference": "power"}})
    preferences = [place(host, policy, "energy_performance_preference") for policy in range(16)]
    preferences[2].write_text("balance_power\n")
    call(tune.main, host, concerns=PREFERENCE)
    assert {preference.read_text() for preference in preferences} == {"balance_power\n"}
    restored = call(restore.main, host)
    assert [finding["now"] for finding in restored["findings"] if "somebody" in finding["reason"]] == [
        {"policy2": "balance_power"}
    ]
    words = [preference.read_text().strip() for preference in preferences]
    assert words == ["balance_performance"] * 2 + ["balance_power"] + ["balance_performance"] * 13


@pytest.mark.parametrize("after", [0, 4, 20])
def test_temporary_errors_lose_no_original(tmp_path: Path, call: Call, after: int) -> None:
    """Writes fail in the middle of a table, and again on the way back; later the host is well."""
    host = fresh(tmp_path, "metal")
    before = state(host)
    take, calls = type(host).write_value, []

    def write(path: str, text: str) -> None:
        calls.append(path)
        if len(calls) > after:
            raise OSError(errno.EIO, "Input/output error", path)
        take(host, path, text)

    host.write_value = write
    both = {"cpu_power": {**GOVERNOR["cpu_power"], "max_exit_latency_us": 10}}
    failed = call(tune.main, host, concerns=both)
    assert failed["failed"]
    assert ("the journal keeps the originals" in failed["msg"]) == (after > 0)
    assert call(restore.main, host).get("failed", False) == (after > 0)
    del host.write_value
    assert not call(restore.main, host).get("failed")
    assert state(host) == before


def test_one_element_that_fails_stops_no_other_on_the_way_back(tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "metal")
    take, calls = type(host).write_value, []

    def write(path: str, text: str) -> None:
        calls.append(path)
        if (len(calls) > 8 and "policy3/" in path) or len(calls) == 8:
            raise OSError(errno.EIO, "Input/output error", path)
        take(host, path, text)

    host.write_value = write
    assert "policy3" in call(tune.main, host, concerns=GOVERNOR)["msg"]
    words = {place(host, policy).read_text().strip() for policy in range(16) if policy != 3}
    assert words == {"powersave"}
    assert place(host, 3).read_text() == "performance\n"


def test_huge_pages_that_a_kill_left_half_reserved_are_freed(tmp_path: Path, call: Call) -> None:
    """The kernel ends a write at a signal with the pages it has."""
    host = host_of(tmp_path, "huge pages")
    before = state(host)
    assert tune_killed(host, TABLES["huge pages"][1], 1)
    [pages] = [path for path in tmp_path.glob(TABLES["huge pages"][2]) if path.read_text().strip() == "64"]
    pages.write_text("37\n")
    assert not call(restore.main, host).get("failed")
    assert state(host) == before


def test_huge_pages_that_somebody_freed_are_left_alone(tmp_path: Path, call: Call) -> None:
    host = host_of(tmp_path, "huge pages")
    call(tune.main, host, concerns=TABLES["huge pages"][1])
    pages = tmp_path / "sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages"
    pages.write_text("37\n")
    restored = call(restore.main, host)
    assert "somebody set node1 to 37" in "".join(finding["reason"] for finding in restored["findings"])
    assert pages.read_text() == "37\n"


def test_an_element_that_cannot_be_read_now_is_not_forgotten(tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "metal")
    before = state(host)
    call(tune.main, host, concerns=GOVERNOR)
    files = [place(host, 6, name) for name in ("scaling_governor", "energy_performance_preference")]
    lent = [file.rename(tmp_path / file.name) for file in files]
    restored = call(restore.main, host)
    assert "policy6 can't be read now" in "".join(finding["reason"] for finding in restored["findings"])
    entries = json.loads((tmp_path / JOURNAL).read_text())["entries"]
    assert {"policy6": "performance"} in [value for entry in entries for value in entry["ours"]]
    for file, lent_file in zip(files, lent):
        lent_file.rename(file)
    assert call(restore.main, host)["changed"]
    assert state(host) == before
    assert not (tmp_path / JOURNAL).exists()


def test_an_element_that_went_after_two_killed_runs_had_the_last_value(tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "metal")
    before = state(host)
    assert tune_killed(host, PREFERENCE, 9)
    assert tune_killed(host, {"cpu_power": {**PREFERENCE["cpu_power"], "energy_performance_preference": "power"}}, 9)
    file = place(host, 6, "energy_performance_preference")
    lent = file.rename(tmp_path / file.name)
    call(restore.main, host)
    lent.rename(file)
    assert not call(restore.main, host).get("failed")
    assert state(host) == before


def test_an_interface_that_is_down_keeps_where_its_interrupts_were_to_go(tmp_path: Path, call: Call) -> None:
    """The driver has released them, so /proc/interrupts names no queue; the kernel keeps their affinity."""
    host = host_of(tmp_path, "affinity")
    before = state(host)
    call(tune.main, host, concerns=TABLES["affinity"][1])
    table = tmp_path / "proc/interrupts"
    up = table.read_text()
    table.write_text("\n".join(line for line in up.splitlines() if "-Tx-Rx-" not in line) + "\n")
    restored = call(restore.main, host)
    assert "the journal keeps" in "".join(finding["reason"] for finding in restored["findings"])
    table.write_text(up)
    assert call(restore.main, host)["changed"]
    assert state(host) == before


def test_a_foreign_part_of_our_value_is_left_alone_and_the_journal_forgets_it(tmp_path: Path, call: Call) -> None:
    """Restore took it for its own write of another element, cut off halfway."""
    host = host_of(tmp_path, "rps")
    call(tune.main, host, concerns=TABLES["rps"][1])
    first, *others = sorted(tmp_path.glob(TABLES["rps"][2]))
    first.write_text("1\n")
    result = call(restore.main, host)
    assert first.read_text() == "1\n"
    assert {path.read_text().strip(",0\n") for path in others} == {""}
    assert [found["status"] for found in result["findings"] if "somebody set rx-0 to" in found["reason"]] == ["advice"]
    assert not (tmp_path / JOURNAL).exists()
