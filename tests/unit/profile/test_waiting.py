# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits and system calls are counted as another program counts them, in bounded memory."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Dict, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._profile import waiting
from ansible_collections.nearmetal.ec2.plugins.module_utils._profile.waiting import Calls, Waits

RECORDED = Path(__file__).with_name("recorded")
KERNEL_THREADS = {"rcu_preempt", "migration/0", "migration/1"}
# Per program: the runs, and the milliseconds that it ran, could have run, and was blocked.
COUNT = r"""
match($0, /\[[0-9]+\]  /) {
    START = RSTART + RLENGTH; task = substr($0, RSTART + RLENGTH, 30); sub(/ +$/, "", task)
    thread = name = task; sub(/.*\[/, "", thread); sub(/[\/\]].*/, "", thread); sub(/\[[0-9\/]+\]$/, "", name)
    split(substr($0, START + 30), field, " ")
    runs[name]++; ran[name] += field[3]
    if (state[thread] == "R") ready[name] += field[1]; else ready[name] += field[2]
    if (state[thread] != "" && state[thread] != "R")
        blocked[name] += field[1] > field[2] ? field[1] - field[2] : 0
    state[thread] = field[4]
}
END { for (name in runs) printf "%s;%d;%.3f;%.3f;%.3f\n", name, runs[name], ran[name], ready[name], blocked[name] }
"""


def test_waits_are_those_that_awk_counts() -> None:
    path = RECORDED / "timehist-perf-6.1-linux-6.18.out"
    done = subprocess.run(["awk", COUNT, str(path)], stdout=subprocess.PIPE, check=True)
    expected = sorted(done.stdout.decode().splitlines())
    waits = Waits()
    waits.add(path.read_text("utf-8").splitlines())
    found = waits.as_dict()
    names = ("ran", "ready", "blocked")
    rows = [
        ";".join([row["name"], str(row["runs"]), *(f"{1000 * row[name]:.3f}" for name in names)])
        for row in found["programs"]
    ]
    assert sorted(rows) == expected != []
    blocked = sum(row["blocked"] for row in found["programs"] if row["name"] not in KERNEL_THREADS)
    assert sum(row["blocked"] for row in found["places"]) == pytest.approx(blocked, abs=1e-4)


LINES = """\
           time    cpu  task name             wait time  sch delay   run time  state
     10.000001 [0000]  redis-server[7]            0.000      0.010      0.500      S    ep_poll <- do_epoll_wait
     10.004001 [0001]  my prog;[x[8/7]            0.000      0.000      3.000      R    schedule
     10.005001 [0000]  redis-server[7]            4.000      2.000      0.250      S    ep_poll <- do_epoll_wait
     10.009001 [0001]  my prog;[x[8/7]            5.000      0.000      1.000      D    io_schedule
"""


def test_a_delay_is_no_wait_and_what_was_preempted_is_ready() -> None:
    waits = Waits()
    waits.add(LINES.splitlines(keepends=True))
    found = waits.as_dict()
    assert (found["wakeups"], found["delay"], found["late"]) == (3, 0.00067, 0.3333)
    assert found["programs"] == [
        {"name": "my prog:[x", "runs": 2, "ran": 0.004, "ready": 0.005, "blocked": 0.0, "longest": 0.005},
        {"name": "redis-server", "runs": 2, "ran": 0.00075, "ready": 0.00201, "blocked": 0.002, "longest": 0.002},
    ]
    where = {"name": "redis-server", "where": "ep_poll <- do_epoll_wait", "waits": 1, "blocked": 0.002}
    assert found["places"] == [where]


def test_system_calls_are_those_of_all_threads_of_a_program() -> None:
    text = (RECORDED / "trace-perf-6.1-linux-6.18.out").read_text("utf-8")
    calls = Calls()
    calls.add(text.splitlines(keepends=True))
    rows = {(row["name"], row["call"]): row for row in calls.as_list()}
    waits = [line.split() for line in text.splitlines() if line.startswith("   futex ")]
    assert len(waits) > 1
    assert rows["qemu-system-x86", "futex"]["calls"] == sum(int(line[1]) for line in waits)
    first: Dict[str, List[str]] = {line.split()[0]: line.split() for line in text.splitlines()[5:12] if line.strip()}
    assert rows["redis-server", "write"]["seconds"] == pytest.approx(float(first["write"][3]) / 1000)


def test_an_older_perf_counts_no_errors() -> None:
    calls = Calls()
    calls.add([" a b (7), 9 events, 1.0%\n", "   read      12     0.240     0.010     0.020     0.030      5.00%\n"])
    assert calls.as_list() == [{"name": "a b", "call": "read", "calls": 12, "errors": 0, "seconds": 0.00024}]
    calls.add(["LOST 12 events!\n", "LOST 3 events!\n"])
    assert calls.lost == 15


def test_what_has_no_room_counts_as_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_MOST_NAMES", 2)
    calls = Calls()
    calls.add([" a (7), 9 events, 1%\n", *(f"   call{number}  1  0  1.000 0.010 \n" for number in range(5))])
    assert {row["name"]: row["calls"] for row in calls.as_list() if row["name"] == "[others]"} == {"[others]": 3}
