# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path
from typing import Callable, Iterator

import pytest
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._forms import html
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._report.model import Report

from tests.support.report.browser import Browser

Open = Callable[..., Browser]
DRAWN = """new Promise((done) => {
  const look = () => document.documentElement.dataset.drawn ? done(true) : setTimeout(look, 5);
  look();
})"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as chromium:
        yield chromium


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Open:
    def opened(report: Report, dark: bool = False) -> Browser:
        page = tmp_path / "report.html"
        page.write_text(html.render(report), "utf-8")
        browser.view(1280, 900, dark)
        browser.open_whole(page)
        assert browser.run(DRAWN)
        assert browser.complaints == []
        return browser

    return opened
