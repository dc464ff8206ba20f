# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the page of an audit leaves out on a phone, and what it never does."""

from __future__ import annotations

import pytest
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report.collect import Collector

from tests.browser.conftest import Open
from tests.support.fleet import finding, result_with
from tests.support.report import reports


@pytest.mark.parametrize("width", [390, 1024])
def test_a_phone_folds_what_needs_no_change(open_page: Open, width: int) -> None:
    slow, fine = finding("hugepages", "would_change", "thp", now="always", wanted="never"), finding("numa", "ok", "a")
    page = open_page(reports.report(result_with(slow, fine)))
    page.view(width, 800)
    shown = (
        "[...document.querySelectorAll('.sheet tr:not(.heading) code')].filter((e) => e.clientHeight || e.offsetHeight)"
    )
    names = f"{shown}.map((e) => e.textContent)"
    if width == 390:
        assert page.run(names) == ["hugepages.thp"]
        page.run("document.querySelector('.unfold').click()")
    assert page.run(names) == ["hugepages.thp", "numa.a"]


@pytest.mark.parametrize("width", [390, 1024])
def test_a_phone_shows_the_concerns_with_something_to_do(open_page: Open, width: int) -> None:
    calm = [finding(name, "ok", "a") for name in ("blkfront_check", "clocksource", "cpu_power", "hugepages", "memory")]
    collected = Collector()
    for host in ("a", "b"):
        collected.add(host, result_with(*calm, finding("network_stack", "would_change", "somaxconn", now=1, wanted=2)))
    collected.unreachable("c", "Failed to connect to the host via ssh: ssh: connect to host 192.0.2.1 port 22: refused")
    page = open_page(collected.report(reports.RUN))
    page.view(width, 800)
    shown = "[...document.querySelectorAll('.map .concern')].filter((e) => e.clientWidth).map((e) => e.textContent)"
    assert (page.run(shown) == ["network_stack"]) is (width == 390)
    right = "Math.max(...[...document.querySelectorAll('.row > *')].map((e) => e.getBoundingClientRect().right))"
    assert page.run(right) <= width
