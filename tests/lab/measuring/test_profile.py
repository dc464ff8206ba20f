# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""On real kernels, with a real perf: a profile names what a tuning moved and nothing else, and a lock that is spun for.

An emulated perf takes ten seconds to start, so these loads go on until it has ended.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lab.host import Host, instance
from tests.support.lab import ansible

LOAD, PROGRAM = Path(__file__).with_name("kernel_load.c"), "/var/tmp/kernel_load"
HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"
CURRENT = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
KERNEL_NAMES = "/proc/sys/kernel/kptr_restrict"
LEFT = "ls -d /var/tmp/nearmetal-* /run/nearmetal/prove.json 2>/dev/null; pgrep -x perf; true"
# Some 5 % of its time it reads the clock of a slow source. The rest is a mix that differs from run to run, as on hosts.
CLOCK_READER = """
import random, subprocess, time
part, rounds, began = random.uniform(0.3, 0.7), 0, time.monotonic()
while time.monotonic() < began + 5 or not subprocess.call(["pgrep", "-x", "perf"], stdout=subprocess.DEVNULL):
    for _round in range(1000):
        time.time()
        sum(range(700)) if random.random() < part else sorted(str(number) for number in range(60))
    rounds += 1
print("rounds", rounds / (time.monotonic() - began), "1/s larger")
"""
# The functions by which a program that asks for the time gets to the device, and those that only a system call has.
OF_THE_CLOCK = re.compile(
    r"(?:\w*clock_gettime\w*|\w*gettimeofday\w*|ktime_get\w*|posix_get_\w*|read_hpet|put_timespec64|\[vdso\]"
    r"|entry_SYSCALL_64\w*|do_syscall_64|x64_sys_call|syscall_\w+|exit_to_user_mode\w*|_copy_to_user|\w*copy_user\w*)"
    r"(?:_\[k\])?"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NEARMETAL_LAB_INSTANCES", str(tmp_path / "instances"))
    return tmp_path


def play(host: Host, folder: Path, playbook: str, **options: object) -> str:
    done = ansible.run(
        ansible.playbook(playbook, ansible.inventory_of(folder, host), options), folder, ansible.PIPELINED
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout
    assert host.run(LEFT) == ""
    return done.stdout


def colored(host: Host, folder: Path, **options: object) -> "dict[str, int]":
    """The functions that the page about both states colors, with 1 for more when tuned and -1 for less."""
    every = {
        "prove_settle": 0.2,
        "prove_seconds": 3,
        "prove_pairs": 6,
        "prove_burn_in": 1,
        "prove_soak": 0,
        "prove_seed": 4711,
        "prove_profile": True,
    }
    output = play(host, folder, "prove", **every, **options)
    assert "16 pairs of profiles" in output
    (page,) = folder.glob("nearmetal-report/prove/*-profile.html")
    data = json.loads(page.read_text("utf-8").partition('type="application/json">')[2].partition("</script>")[0])
    print({data["names"][number]: evidence for number, _direction, evidence in data["moved"]})
    return {data["names"][number]: direction for number, direction, _evidence in data["moved"]}


@pytest.mark.parametrize("shape", ["profile", "profile_6_12"])
def test_of_a_faster_clock_only_the_system_call_is_colored(shape: str, folder: Path) -> None:
    with instance.running(shape, "profile") as host:
        host.run(f"cat > /var/tmp/reader.py <<'END'\n{CLOCK_READER}END")
        assert host.run(f"cat {CURRENT}").strip() == "hpet"
        command = "python3 /var/tmp/reader.py"
        found = colored(host, folder, prove_command=command, tune_concerns={"clocksource": {"source": "tsc"}})
    assert found["read_hpet_[k]"] == found["__x64_sys_clock_gettime_[k]"] == -1
    assert [name for name in found if not OF_THE_CLOCK.fullmatch(name)] == []


def copy_load(host: Host, folder: Path) -> None:
    built = folder / "kernel_load"
    # Static, because the host's C library may be older than this machine's.
    subprocess.run(["gcc", "-O1", "-static", "-fno-omit-frame-pointer", "-o", built, LOAD, "-lpthread"], check=True)
    host.run(f"install -m 755 /dev/stdin {PROGRAM}", stdin=built.read_bytes())


def test_of_huge_pages_their_fault_is_colored(folder: Path) -> None:
    with instance.running("profile", "profile") as host:
        copy_load(host, folder)
        host.run(f"echo never > {HUGE_PAGES}; echo tsc > {CURRENT}")  # which the basic concerns would compare too
        options = {"prove_restart": "true", "tune_concerns": {"hugepages": {"thp": "always"}}}
        found = colored(host, folder, prove_command=f"{PROGRAM} fresh 3", **options)
    assert found["do_huge_pmd_anonymous_page_[k]"] == 1


@pytest.mark.parametrize("shape", ["profile", "profile_6_12"])
def test_what_a_setting_could_change_is_named_although_the_host_hides_the_names(shape: str, folder: Path) -> None:
    with instance.running(shape, "profile") as host:
        copy_load(host, folder)
        host.run(f"echo 2 > {KERNEL_NAMES}; echo never > {HUGE_PAGES}")
        locks = profiled(host, folder, "locks", profile_waits=True)
        fresh = profiled(host, folder, "fresh")
        assert host.run(f"cat {KERNEL_NAMES}").strip() == "2"
    assert "spinning" in [row["name"] for row in locks["advice"]]
    assert "native_queued_spin_lock_slowpath_[k]" in [row["name"] for row in locks["top"]]
    assert ("kernel_load", "dup") in [(row["name"], row["call"]) for row in locks["calls"]]
    assert locks["waits"]["wakeups"] > 0
    assert "small_pages" in [row["name"] for row in fresh["advice"]]


def profiled(host: Host, folder: Path, load: str, **options: object) -> "dict[str, Any]":
    """The result of a profile under this load, of which the folded stacks have all samples."""
    host.run(f"systemd-run --quiet --unit={load} {PROGRAM} {load} 600")
    play(host, folder, "profile", profile_seconds=3, profile_kernel_names=True, **options)
    host.run(f"systemctl stop {load}")
    document = sorted(folder.glob("nearmetal-report/profile/*.json"))[-1]
    found: "dict[str, Any]" = json.loads(document.read_text("utf-8"))["result"]
    lines = document.with_suffix(".folded").read_text("utf-8").splitlines()
    assert sum(int(line.rpartition(" ")[2]) for line in lines) == found["samples"]
    return found
