# Copyright (c) 2026 The nearmetal.ec2 authors
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
    assert page.run("[...document.querySelectorAll('.d-panel > .d-title')].map((e) => e.textContent)") == [
        "Now",
        "After this run",
    ]
    cpus = "[...document.querySelectorAll('.d-panel:nth-child(%d) .d-core .d-label')]"
    duties = cpus + ".map((e) => `${e.textContent} ${e.className.slice(10)}`)"
    assert page.run(duties % 1) == ["0 may", "2 may", "1 may", "3 may"]
    assert page.run(duties % 2) == ["0 answers", "2 idle", "1 answers", "3 idle"]
    assert page.run("document.querySelector('.queues').innerText") == "ens5 at node 0 2 queues: any CPU → CPUs 0 and 1"
    said = page.run("[...document.querySelectorAll('.d-text, .d-label')].map((e) => e.textContent)")
    device = "NIC ens5 (ena) 0000:00:05.0 at node 0"
    assert {"Socket 1 of 1", "NUMA node 0, 23.54 GiB, CPUs 0-3", "L3 35 MiB", device, "nvme0n1 EBS"} <= set(said)
    assert "L1d 48 KiB per core" in said
    assert page.run("document.querySelector('.d-core .d-label').title") == (
        "CPU 0: may handle the interrupts of ens5 queue 0, ens5 queue 1"
    )


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
