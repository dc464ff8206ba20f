# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values as words in a line of the terminal, and the length of foreign values in messages."""

from __future__ import annotations

import sys
from typing import Any, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._words import (
    choices,
    counted,
    in_words,
    lines_of,
    printable,
    sentence,
    shown,
    status_words,
)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "absent"),
        ("", "absent"),
        ({}, "absent"),
        (False, "false"),
        (4096, "4096"),
        ("tsc", "tsc"),
        ("x" * 40, "x" * 23 + "…"),
        ({"0": "performance", "1": "performance"}, "performance × 2"),
        ({"0": "performance"}, "performance"),
        ({"0": 0, "1": 2, "2": None}, "0, 2, absent"),
        ({"eth0": {"rx-0": "0", "rx-1": "2"}}, "0, 2"),
        ({str(queue): f"cpu {queue}" for queue in range(64)}, "64 values"),
        (["a", "b"], "a, b"),
    ],
)
def test_values_in_words(value: Any, words: str) -> None:
    assert in_words(value, "absent", 24) == words


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a → b × 2…", "a → b × 2…"),
        ("a\nb\tc\r\nd", "a b c  d"),
        ("\x1b[31mred\x07", "[31mred"),
        ("\u202eright to left", "right to left"),
        ("\ud800\0", ""),
    ],
)
def test_a_message_is_one_line_that_a_terminal_only_shows(text: str, line: str) -> None:
    assert printable(text) == line
    assert sentence(text) == line


def test_a_noun_agrees_with_its_number() -> None:
    assert [counted(number, "queue") for number in (0, 1, 2)] == ["0 queues", "1 queue", "2 queues"]


def test_of_many_names_the_nearest_is_shown_first_and_those_for_which_there_is_room() -> None:
    assert choices(["idle", "turbo"]) == "idle, turbo"
    assert choices(["idle", "turbo"], "tubro") == "turbo, idle; is turbo meant?"
    names = [f"option_{number:02}" for number in range(40)]
    text = choices(names, "option39")
    assert text.startswith("option_39, option_00, option_01, ")
    assert text.endswith(", option_24 and 14 more; is option_39 meant?")
    assert len(text) <= 330
    assert choices(["x" * 400, "y"]) == "x" * 400 + " and 1 more"


def test_names_beside_nothing_that_was_given_are_compared_with_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "difflib", None)  # what a tune without an option would load on each host
    assert choices(["idle", "turbo"]) == "idle, turbo"


def test_a_value_is_shown_by_at_most_300_characters() -> None:
    assert shown("tsc") == "'tsc'"
    assert shown([1, "\x1b"]) == "[1, '\\x1b']"
    assert shown("x" * 1_000_000) == "'" + "x" * 298 + "…"
    assert len(shown({"a b": ["c d"] * 100_000})) == 300


def test_yaml_values_are_shown_as_yaml_writes_them() -> None:
    assert [shown(value) for value in (True, False, None)] == ["true", "false", "null"]


def test_a_value_that_python_cannot_write_is_still_shown() -> None:
    deep: List[Any] = []
    for _level in range(100_000):
        deep = [deep]
    assert shown(deep) == "a list that is too large to show"
    assert len(shown(10**5000)) <= 300


def test_a_sentence_keeps_what_it_says_around_a_long_value() -> None:
    value = "x" * 1_000_000
    assert sentence(f"{value} is no clock source: use tsc") == "x" * 299 + "… is no clock source: use tsc"
    assert len(sentence("word " * 1_000_000)) == 1500


@pytest.mark.parametrize(
    ("status", "count", "words"),
    [
        ("ok", 1, "ok"),
        ("would_change", 3, "would change"),
        ("not_applicable", 1, "not applicable"),
        ("needs_reboot", 1, "needs a reboot"),
        ("needs_reboot", 4, "need a reboot"),
        ("needs_restart", 2, "need a restart"),
    ],
)
def test_a_status_reads_as_words_whose_verb_agrees_with_the_number(status: str, count: int, words: str) -> None:
    assert status_words(status, count) == words


def test_a_message_of_several_mistakes_keeps_its_lines() -> None:
    said = sentence("2 mistakes: • one\twith a tab • two\nin two lines")
    assert said == "2 mistakes: • one with a tab • two in two lines"
    assert lines_of(said) == ["2 mistakes:", "• one with a tab", "• two in two lines"]
    assert lines_of("x can't be 'a • b'") == ["x can't be 'a • b'"]
    assert len(sentence("12 mistakes:" + 12 * f" • {'word ' * 99}")) <= 1500
