# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""report.md in a ticket: it fits, its commands can be copied, and hosts that are alike are said once."""

from __future__ import annotations

from typing import List

import pytest
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._forms import markdown
from markdown_it import MarkdownIt

from tests.support.fleet import GOOD_CLOCK, SLOW_CLOCK, result_with
from tests.support.report import reports

MOST = 65_536  # characters of a comment on GitHub


def codes(text: str) -> List[str]:
    """What a reader may copy: the code in the text, as a parser of GitHub's dialect sees it."""
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(text)
    return [child.content for token in tokens for child in token.children or () if child.type == "code_inline"]


@pytest.mark.parametrize("hosts", [1, 20, 400, 1000])
def test_a_tracker_takes_the_report_of_any_fleet(hosts: int) -> None:
    text = markdown.render(reports.fleet(hosts))
    assert len(text) < MOST
    assert hosts < 400 or " further hosts in report.html and report.json\n" in text


def test_a_fix_is_code_that_can_be_copied() -> None:
    fixes = [code for code in codes(markdown.render(reports.fleet(3))) if "tune_only=" in code]
    assert fixes
    assert all(code.startswith("ansible-playbook nearmetal.ec2.tune -i hosts.yml --limit ") for code in fixes)


def test_hosts_of_which_the_same_is_said_share_a_section() -> None:
    text = markdown.render(reports.report(*[result_with(SLOW_CLOCK)] * 30, result_with(GOOD_CLOCK)))
    sections = [line for line in text.splitlines() if line.startswith("## h")]
    assert sections == ["## h0, h1, h10 and 27 more", "## h30"]
