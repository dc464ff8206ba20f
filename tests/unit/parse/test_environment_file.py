# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The operator's file of variables: one word is added and taken back, every other byte stays. A shell checks it."""

from __future__ import annotations

import shlex

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import environment_file as file
from hypothesis import given
from hypothesis import strategies as st

NAME, WORD = "IRQBALANCE_ARGS", "--banmod=ena"
TOKENS = st.from_regex(r"[A-Za-z0-9_.,:=+/@-]{1,12}", fullmatch=True)
LINES = st.sampled_from(
    [
        "# IRQBALANCE_ARGS=",
        "",
        "IRQBALANCE_DEBUG=",
        'OTHER="a b"',
        "\tIRQBALANCE_ONESHOT=yes  ",
        "IRQBALANCE_ARGS_X=1",
        "é\r",
    ]
)


def plain(words: "list[str]", quote: str) -> str:
    return quote + " ".join(words) + quote


@given(
    st.lists(LINES, max_size=6),
    st.lists(LINES, max_size=6),
    st.lists(TOKENS, max_size=3),
    st.sampled_from(["'", '"']),
    st.booleans(),
)
def test_an_argument_is_added_for_every_reader_and_taken_back_to_the_byte(
    before: "list[str]", after: "list[str]", words: "list[str]", quote: str, last_newline: bool
) -> None:
    raw = words[0] if len(words) == 1 and quote == "'" else plain(words, quote)
    text = "\n".join([*before, f"{NAME}={raw}", *after]) + "\n" * last_newline
    assert file.assignment(text, NAME) == raw
    longer = file.extended(raw, WORD)
    assert longer is not None
    changed = file.assigned(text, NAME, longer)
    assert shlex.split(shlex.split(longer)[0]) == [*words, WORD]
    assert file.assigned(changed, NAME, raw) == text
    assert [line for line in changed.splitlines() if not line.startswith(f"{NAME}=")] == [
        line for line in text.splitlines() if not line.startswith(f"{NAME}=")
    ]


@given(st.lists(LINES, max_size=6).map("\n".join).map(lambda text: text + "\n" if text else text))
def test_a_file_without_the_variable_gets_a_line_that_restore_removes(text: str) -> None:
    assert file.assignment(text, NAME) is None
    changed = file.assigned(text, NAME, WORD)
    assert changed == f"{text}{NAME}={WORD}\n"
    assert file.assigned(changed, NAME, None) == text


@pytest.mark.parametrize("raw", ['"a\\ b"', '"$X"', "'a' 'b'", "a b", '"`id`"', '"a', "a;b", "a\\"])
def test_text_with_escapes_or_variables_is_not_edited(raw: str) -> None:
    assert file.words(raw) is None
    assert file.extended(raw, WORD) is None


def test_the_last_assignment_counts() -> None:
    text = f'{NAME}="-e 1"\n{NAME}=""\n'
    assert file.assigned(text, NAME, f'"{WORD}"') == f'{NAME}="-e 1"\n{NAME}="{WORD}"\n'


@pytest.mark.parametrize(
    ("unit", "files", "variable"),
    [
        ("EnvironmentFile=-/a\nEnvironmentFile=/b\nExecStart=/usr/sbin/irqbalance -f $ARGS\n", ("/a", "/b"), "ARGS"),
        ("EnvironmentFile=/a\nExecStart=/x $A\nEnvironmentFile=\nEnvironmentFile=/c\n", ("/c",), "A"),
        ("ExecStart=/x $A\nExecStart=\nExecStart=/x --fixed\n", (), None),
        ("ExecStart=/x ${A}\n", (), None),
    ],
)
def test_the_settings_that_a_unit_reads(unit: str, files: "tuple[str, ...]", variable: "str | None") -> None:
    assert file.reads(unit) == (files, variable)
