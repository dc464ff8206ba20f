# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `--diff` shows of a result."""

from __future__ import annotations

from typing import Any, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._ansible import diffs

FILE = "/etc/sysctl.d/99-nearmetal-memory.conf"
WANTED = {"before": {"wanted": {"memory": None}}, "after": {"wanted": {"memory": {"persist": True}}}}
DIFF: Dict[str, Any] = {
    "before": {"sysctl": {"vm.swappiness": "60"}, "files": {FILE: None}, **WANTED["before"]},
    "after": {"sysctl": {"vm.swappiness": "1"}, "files": {FILE: "# Ours\nvm.swappiness = 1\n"}, **WANTED["after"]},
}


def titled(title: str, before: Any, after: Any) -> Dict[str, Any]:
    return {"before": before, "after": after, "before_header": title, "after_header": title}


def test_settings_and_each_file_have_the_hosts_name_and_what_is_stored_is_left_out() -> None:
    assert diffs.differences("db-1", DIFF) == [
        titled("db-1, settings", {"sysctl": {"vm.swappiness": "60"}}, {"sysctl": {"vm.swappiness": "1"}}),
        titled(f"db-1, {FILE}", "", "# Ours\nvm.swappiness = 1\n"),
    ]


def test_what_is_stored_shows_where_nothing_else_differs() -> None:
    assert diffs.differences("db-1", WANTED) == [titled("db-1, settings", WANTED["before"], WANTED["after"])]


@pytest.mark.parametrize("diff", [{"prepared": "-a\n+b\n"}, {"before": "a\n", "after": "b\n"}, "text", None])
def test_another_form_stays_as_it_is(diff: Any) -> None:
    assert diffs.differences("db-1", diff) == [diff]


def test_a_hostile_file_is_no_command_to_a_terminal() -> None:
    hostile = {"files": {f"{FILE}\x1b[2J\n": "\x1b]0;title\x07a\rb\n", "/etc/other": ["no text"]}}
    settings, file = diffs.differences("db-1", {"before": {"files": {}}, "after": hostile})
    assert settings["after"] == {"files": {"/etc/other": ["no text"]}}
    assert file == titled(f"db-1, {FILE} ", "", "a b\n")


def test_the_result_has_its_own_difference_again_afterwards() -> None:
    result: Dict[str, Any] = {"diff": DIFF, "results": [{"diff": DIFF}, "no result"]}
    with diffs.by_file("db-1", result):
        assert [difference["before_header"] for difference in result["diff"]] == ["db-1, settings", f"db-1, {FILE}"]
        assert result["results"][0]["diff"] == result["diff"]
    assert result == {"diff": DIFF, "results": [{"diff": DIFF}, "no result"]}
