# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's counters before and after a load."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Callable, List, Mapping, Optional

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.host import load_sample

HostOf = Callable[[Mapping[str, str]], Host]


def process(pid: int, name: str, group: str) -> "dict[str, str]":
    """A process of user space in a cgroup."""
    return {
        f"/proc/{pid}/stat": f"{pid} ({name}) S 1 {pid} {pid} 0 -1 0 0 0 0 0 30 20 0 0 20 0 1 0 500 0 0\n",
        f"/proc/{pid}/cgroup": f"0::{group}\n",
    }


def limited(group: str, count: int) -> "dict[str, str]":
    """A cgroup with a limit that was used up so often."""
    return {f"/sys/fs/cgroup{group}/cpu.stat": f"usage_usec 9\nnr_periods 99\nnr_throttled {count}\n"}


FILES = {
    "/proc/self/cgroup": "0::/user.slice/session-1.scope\n",
    **limited("/user.slice", 1),
    **limited("/system.slice", 10),
    **limited("/system.slice/redis.service", 100),
    **limited("/system.slice/other.service", 1000),
    **process(700, "redis-server", "/system.slice/redis.service"),
    **process(701, "redis-server", "/system.slice/redis.service"),
    **process(800, "other", "/system.slice/other.service"),
}


@pytest.mark.parametrize(
    ("programs", "count"),
    [([], 1), (["redis-server"], 111), (["redis-server", "other"], 1111), (["redis-server", "absent"], None)],
)
def test_throttled_are_the_programs_that_serve_the_load_too(
    programs: "List[str]", count: "Optional[int]", host_of: HostOf
) -> None:
    assert load_sample.observe(host_of(FILES), programs).counters.throttled == count


def ticked(*cpus: str) -> "dict[str, str]":
    """What /proc/stat says of each CPU, after the line of all."""
    lines = [f"cpu{number} {times}" for number, times in enumerate(cpus)]
    sums = [sum(column) for column in zip(*([int(time) for time in times.split()] for times in cpus))]
    return {"/proc/stat": "\n".join(["cpu  " + " ".join(map(str, sums)), *lines, "intr 5"]) + "\n"}


def test_busy_is_the_busiest_cpu_on_which_a_generator_of_one_thread_runs(host_of: HostOf) -> None:
    before = load_sample.ticks(host_of(ticked(*["10 0 0 100 0 0 0 0 0 0"] * 16)))
    now = ["60 0 40 110 0 0 0 0 0 0", *["10 0 0 200 0 0 0 0 0 0"] * 15]
    host = host_of(ticked(*now))
    assert load_sample.busy(before, load_sample.ticks(host)) == pytest.approx(0.9)
    assert load_sample.busy({}, load_sample.ticks(host)) is None
    assert load_sample.busy(before, load_sample.ticks(host), 0.6) == pytest.approx(0.3), "others used most of that CPU"
    sample = load_sample.observe(host, ()).counters
    assert sample.cpu_total == pytest.approx((210 + 15 * 210) / load_sample._rate())


def test_a_program_has_ended_when_none_of_its_processes_is_left(host_of: HostOf) -> None:
    programs = ("redis-server", "other", "absent")
    before = load_sample.served(host_of(FILES), programs)
    assert {name: len(processes) for name, processes in before.items()} == {"redis-server": 2, "other": 1, "absent": 0}
    worker_gone = {path: text for path, text in FILES.items() if not path.startswith("/proc/701/")}
    began_later = FILES["/proc/800/stat"].replace(" 500 0 0", " 900 0 0")
    after = load_sample.served(host_of({**worker_gone, "/proc/800/stat": began_later}), programs)
    assert load_sample.ended(before, after) == ["other"]
    assert load_sample.ended(before, before) == []


def used(pid: int, name: str, parent: int, own: float, of_children: float = 0) -> "dict[str, str]":
    """A process with the CPU seconds that it used, and those of the children that it waited for."""
    ticks = [round(seconds * load_sample._rate()) for seconds in (own, of_children)]
    times = f"{ticks[0]} 0 {ticks[1]} 0"
    return {f"/proc/{pid}/stat": f"{pid} ({name}) S {parent} {pid} {pid} 0 -1 0 0 0 0 0 {times} 20 0 1 0 500 0 0\n"}


@pytest.mark.parametrize(
    ("before", "after", "programs"),
    [
        # A child of 60 s that ends within the load used 1 s of it; its parent gets all 61.
        (
            {**used(10, "shell", 1, 2), **used(11, "build", 10, 60)},
            used(10, "shell", 1, 2.5, 61),
            {"shell": 1.5},
        ),
        # A child of a child, each waited for: what the middle one had from others before is not used now either.
        (
            {**used(10, "shell", 1, 2, 5), **used(11, "make", 10, 3, 40), **used(12, "cc", 11, 7)},
            used(10, "shell", 1, 2, 5 + 3 + 40 + 7 + 4),
            {"shell": 4},
        ),
        # The first process isn't charged for what others left to it.
        ({**used(1, "init", 0, 2, 9), **used(11, "build", 1, 60)}, used(1, "init", 0, 3, 70), {"init": 1}),
        # A parent that doesn't wait gets nothing of its children, and what it used itself stays.
        ({**used(10, "server", 1, 2), **used(11, "worker", 10, 60)}, used(10, "server", 1, 3), {"server": 1}),
        # A process that began within the load.
        ({}, used(11, "build", 1, 2, 1), {"build": 3}),
    ],
)
def test_a_process_that_ends_is_charged_for_what_it_used_meanwhile(
    before: "dict[str, str]", after: "dict[str, str]", programs: "dict[str, float]", host_of: HostOf, root: Path
) -> None:
    first = load_sample.observe(host_of(before), ())
    shutil.rmtree(root / "proc", ignore_errors=not before)
    second = load_sample.observe(host_of(after), ())
    assert dict(load_sample.foreign(first, second, ())) == pytest.approx(programs)


def test_what_descends_from_this_process_is_a_part_of_the_load(host_of: HostOf) -> None:
    own = os.getpid()
    load = {**used(20, "saver", own, 9), **used(21, "worker", 20, 9), **used(22, "loop", 22, 5)}
    first = load_sample.observe(host_of({}), ())
    second = load_sample.observe(host_of(load), ())
    assert load_sample.foreign(first, second, ()) == [("loop", pytest.approx(5))]


@pytest.mark.parametrize("ticks", ["²", "٣", "1" * 3000])
def test_a_process_whose_times_are_no_numbers_is_left_out(ticks: str, host_of: HostOf) -> None:
    stat = f"10 (shell) S 1 10 10 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 500 0 0\n"
    assert load_sample.observe(host_of({"/proc/10/stat": stat}), ()).usage == {}
