# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""cpu_power's real main() on a fake kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.modules import cpu_power, restore

from tests.support.boot_trees import debian
from tests.support.fake_kernel import FakeKernel, everything
from tests.support.hosts import files_of

Call = Callable[..., Dict[str, Any]]
CPU = "/sys/devices/system/cpu"
EVERYTHING = {
    "idle": "c1",
    "turbo": "disabled",
    "governor": "performance",
    "energy_performance_preference": "performance",
}


@pytest.fixture
def host(tmp_path: Path) -> FakeKernel:
    """A metal instance of 16 CPUs with intel_idle and intel_pstate."""
    return FakeKernel(tmp_path, files_of("metal"))


def read(host: FakeKernel, path: str) -> str:
    return (Path(host.root) / path.lstrip("/")).read_text().strip()


def left_out(host: FakeKernel, state: int) -> int:
    """How many CPUs leave the state out."""
    return sum(read(host, f"{CPU}/cpu{cpu}/cpuidle/state{state}/disable") == "1" for cpu in range(16))


def test_a_boot_brings_the_same_turbo_by_either_driver(host: FakeKernel, call: Call) -> None:
    """cpufreq's boost means the inverse of no_turbo; whichever driver the next boot has finds its line."""
    for turbo, no_turbo in (("disabled", "1"), ("enabled", "0")):
        call(cpu_power.main, host, turbo=turbo)
        lines = read(host, "/etc/tmpfiles.d/nearmetal-cpu_power.conf").splitlines()
        values = {line.split()[1]: line.split()[-1] for line in lines if line.startswith("w")}
        boost = {"1": "0", "0": "1"}[no_turbo]
        assert values == {f"{CPU}/intel_pstate/no_turbo": no_turbo, f"{CPU}/cpufreq/boost": boost}


def test_check_apply_check_apply_restore(host: FakeKernel, call: Call) -> None:
    before = everything(host)
    checked = call(cpu_power.main, host, check=True, **EVERYTHING)
    assert everything(host) == before
    applied = call(cpu_power.main, host, **EVERYTHING)
    results = [checked, applied] + [call(cpu_power.main, host, check=check, **EVERYTHING) for check in (True, False)]
    assert [result["changed"] for result in results] == [True, True, False, False]
    assert checked["diff"] == applied["diff"]
    assert [left_out(host, state) for state in range(4)] == [0, 0, 16, 16]
    assert read(host, f"{CPU}/intel_pstate/no_turbo") == "1"
    assert read(host, f"{CPU}/cpufreq/policy15/scaling_governor") == "performance"
    assert call(restore.main, host)["changed"]
    assert everything(host) == before


def test_what_only_metal_has_is_set_for_each_boot_and_taken_back(tmp_path: Path, call: Call) -> None:
    package = f"{CPU}/intel_uncore_frequency/package_00_die_00"
    profile = "/sys/firmware/acpi/platform_profile"
    files = {f"{CPU}/cpu{cpu}/power/energy_perf_bias": "6\n" for cpu in range(16)}
    files.update({f"{package}/{name}_freq_khz": "2400000\n" for name in ("max", "initial_max")})
    files.update({f"{package}/{name}_freq_khz": "800000\n" for name in ("min", "initial_min")})
    files.update({profile: "balanced\n", f"{profile}_choices": "balanced performance\n"})
    host = FakeKernel(tmp_path, {**files_of("metal"), **files})
    before = everything(host)
    wanted = {"energy_perf_bias": 0, "uncore_frequency": "max", "platform_profile": "performance"}
    assert call(cpu_power.main, host, check=True, **wanted)["changed"]
    assert everything(host) == before
    assert call(cpu_power.main, host, **wanted)["changed"]
    assert {read(host, f"{CPU}/cpu{cpu}/power/energy_perf_bias") for cpu in range(16)} == {"0"}
    assert read(host, f"{package}/min_freq_khz") == "2400000"
    assert read(host, profile) == "performance"
    lines = read(host, "/etc/tmpfiles.d/nearmetal-cpu_power.conf").splitlines()
    values = {line.split()[1]: line.split()[-1] for line in lines if line.startswith("w")}
    assert values == {f"{CPU}/cpu*/power/energy_perf_bias": "0", profile: "performance"}
    assert not call(cpu_power.main, host, **wanted)["changed"]
    call(restore.main, host)
    assert everything(host) == before


def test_from_the_governor_performance_and_back(host: FakeKernel, call: Call) -> None:
    """intel_pstate takes no other preference than performance there, so the order counts, on the way back too."""
    for cpu in range(16):
        host.write_value(f"{CPU}/cpufreq/policy{cpu}/scaling_governor", "performance\n")
    before = everything(host)
    wanted = {"governor": "powersave", "energy_performance_preference": "balance_power"}
    assert call(cpu_power.main, host, **wanted)["changed"]
    assert read(host, f"{CPU}/cpufreq/policy7/energy_performance_preference") == "balance_power"
    restored = call(restore.main, host)
    assert not restored.get("failed"), restored["msg"]
    assert everything(host) == before


def test_only_what_differs_is_written(host: FakeKernel, call: Call) -> None:
    for cpu in range(15):
        host.write_value(f"{CPU}/cpu{cpu}/cpuidle/state3/disable", "1\n")
    host.written.clear()
    call(cpu_power.main, host, max_exit_latency_us=10)
    assert host.written == [(f"{CPU}/cpu15/cpuidle/state3/disable", "1\n")]


@pytest.mark.parametrize("mood", ["EPERM", "ignores"])
def test_turbo_that_the_firmware_keeps_off_fails(host: FakeKernel, call: Call, mood: str) -> None:
    """no_turbo reads 1 and takes nothing when the firmware has turbo off."""
    host.write_value(f"{CPU}/intel_pstate/no_turbo", "1\n")
    before = everything(host)
    host.moods[f"{CPU}/intel_pstate/no_turbo"] = mood
    failed = call(cpu_power.main, host, turbo="enabled", idle="c1")
    assert failed["failed"]
    assert "turbo" in failed["msg"]
    assert "taken back" in failed["msg"]
    assert everything(host) == before


def test_an_idle_state_that_refuses_the_value_brings_all_back(host: FakeKernel, call: Call) -> None:
    before = everything(host)
    host.moods[f"{CPU}/cpu9/cpuidle/state2/disable"] = "EIO"
    failed = call(cpu_power.main, host, idle="c1")
    assert "cpu9/cpuidle/state2/disable (EIO" in failed["msg"]
    assert everything(host) == before


def test_a_reboot_brings_the_kernels_choice_and_restore_agrees(host: FakeKernel, call: Call) -> None:
    call(cpu_power.main, host, idle="c1", turbo="disabled")
    host.reboot("99999999-0000-0000-0000-000000000000")
    host.write_value(f"{CPU}/intel_pstate/no_turbo", "1\n")  # as systemd-tmpfiles does at boot
    assert left_out(host, 3) == 0
    call(restore.main, host)
    assert read(host, f"{CPU}/intel_pstate/no_turbo") == "0"
    assert not host.exists("/etc/tmpfiles.d/nearmetal-cpu_power.conf")


def test_192_cpus_stay_small(tmp_path: Path, call: Call) -> None:
    import json

    from tests.support.files.power import frequency_files, idle_files

    files = files_of("metal")
    cpus = {f"{CPU}/{name}": "0-191\n" for name in ("online", "present", "possible")}
    states = [["POLL", 0], ["C1", 2], ["C1E", 10], ["C6", 133]]
    files.update(cpus)
    files.update(idle_files(192, "intel_idle", states))
    files.update(frequency_files(192, "intel_pstate", ["powersave", "performance"], "intel_pstate/no_turbo", []))
    files.update({f"{CPU}/cpu{cpu}/topology/thread_siblings_list": f"{cpu}\n" for cpu in range(192)})
    host = FakeKernel(tmp_path, files)
    applied = call(cpu_power.main, host, idle="c1", turbo="disabled", governor="performance")
    assert applied["changed"]
    assert len(json.dumps(applied)) < 65536


def test_kernel_arguments_there_and_back(tmp_path: Path, call: Call) -> None:
    host = debian(tmp_path)
    before = everything(host)
    applied = call(cpu_power.main, host, idle="c1", method="boot")
    assert applied["reboot_required"]
    assert host.boot().endswith(" intel_idle.max_cstate=1 processor.max_cstate=1")
    again = call(cpu_power.main, host, idle="c1", method="boot")
    assert not again["changed"]
    assert not again["reboot_required"]
    # Another method takes the arguments back and does at run time what they did.
    assert call(cpu_power.main, host, idle="c1", method="runtime")["changed"]
    assert "max_cstate" not in host.boot()
    assert left_out(host, 3) == 16
    call(restore.main, host)
    assert {path: text for path, text in everything(host).items() if "/proc/" not in path} == {
        path: text for path, text in before.items() if "/proc/" not in path
    }


def test_polling_gives_way_to_c1_in_the_kernel_arguments(tmp_path: Path, call: Call) -> None:
    host = debian(tmp_path)
    call(cpu_power.main, host, idle="poll", allow_poll=True, method="boot")
    assert host.boot().endswith(" idle=poll")
    call(cpu_power.main, host, idle="c1", method="boot")
    assert "idle=poll" not in host.boot()
