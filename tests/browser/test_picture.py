# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The picture of a host in the page of a report, in a real browser."""

from __future__ import annotations

from typing import Callable, Dict, List

import pytest

from tests.support.report.browser import Browser
from tests.support.report.pictured import pictured

Open = Callable[..., Browser]


def test_the_picture_shows_who_does_the_networks_work_before_and_after(open_page: Open) -> None:
    page = open_page(pictured())
    assert page.run("[...document.querySelectorAll('.panel-name')].map((e) => e.textContent)") == [
        "Now",
        "After this run",
    ]
    duties = "[...document.querySelectorAll('.panel:nth-child(%d) .cpu')].map((e) => `${e.textContent} ${e.className}`)"
    assert page.run(duties % 1) == ["0 cpu may", "2 cpu may", "1 cpu may", "3 cpu may"]
    assert page.run(duties % 2) == ["0 cpu answers", "2 cpu idle", "1 cpu answers", "3 cpu idle"]
    assert page.run("document.querySelector('.queues').innerText") == "ens5 at node 0 2 queues: any CPU → CPUs 0 and 1"
    labels = page.run("[...document.querySelectorAll('.panel:first-child .label, .device')].map((e) => e.textContent)")
    assert {"Socket 1 of 1", "NUMA node 0, 23.54 GiB", "L3 35 MiB", "ens5 ena", "nvme0n1 EBS"} <= set(labels)
    assert "per core L1d 48 KiB" in page.run("document.querySelector('figcaption').textContent")


@pytest.mark.parametrize(
    ("now", "wanted", "lines"),
    [
        ([0] * 8, [*range(8)], ["queue 0: CPU 0, stays", "queues 1–7: CPU 0 → CPUs 1–7, one each"]),
        ([0] * 3, [4, 8, 6], ["3 queues: CPU 0 → CPUs 4, 8 and 6"]),
        ([1, 1], [5, 5], ["2 queues: CPU 1 → CPU 5"]),
    ],
)
def test_queues_that_move_alike_are_one_line(
    open_page: Open, now: List[int], wanted: List[int], lines: List[str]
) -> None:
    def served(cpu: int) -> Dict[str, str]:
        return {"cpus": str(cpu), "nodes": "0", "rps": "", "xps": ""}

    rows = [
        {"queue": number, "now": served(before), "wanted": served(after)}
        for number, (before, after) in enumerate(zip(now, wanted))
    ]
    page = open_page(pictured(queues=rows))
    said = page.run("[...document.querySelectorAll('.queues li')].map((e) => e.innerText)")
    assert said == [f"ens5 at node 0 {line}" for line in lines]


def test_commas_are_within_lists_of_cpus_alone(open_page: Open) -> None:
    before = {"cpus": "0,2", "nodes": "0", "rps": "1,3", "xps": "0,1"}
    after = {"cpus": "0", "nodes": "0", "rps": "2,3", "xps": ""}
    page = open_page(pictured(queues=[{"queue": 0, "now": before, "wanted": after}]))
    said = "queue 0: one of CPUs 0,2 · helpers 1,3 · sends for 0,1 → CPU 0 · helpers 2,3"
    assert said in page.run("document.querySelector('.queues').innerText")
