# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel arguments as tokens."""

from __future__ import annotations

from typing import Optional, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import cmdline
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("root=/dev/sda1 ro quiet\n", ("root=/dev/sda1", "ro", "quiet")),
        ("console=tty0 console=ttyS0,115200n8", ("console=tty0", "console=ttyS0,115200n8")),
        ('a="b c" "d=e f" g', ('a="b c"', '"d=e f"', "g")),
        ('open="to the end\n', ('open="to the end',)),
        ("  \n", ()),
    ],
)
def test_tokens_keep_order_duplicates_and_quotes(text: str, expected: Tuple[str, ...]) -> None:
    assert cmdline.tokens(text) == expected


WORD = st.text(st.characters(min_codepoint=33, max_codepoint=126, blacklist_characters='"'), min_size=1, max_size=20)
QUOTED = st.tuples(WORD, st.text(st.sampled_from("ab ="), max_size=10)).map(lambda pair: '{}="{}"'.format(*pair))


@given(words=st.lists(st.one_of(WORD, QUOTED), max_size=20))
def test_joined_tokens_are_the_tokens_again(words: "list[str]") -> None:
    assert cmdline.tokens(" ".join(words) + "\n") == tuple(words)


@pytest.mark.parametrize(
    ("token", "name", "value"),
    [
        ("quiet", "quiet", None),
        ("nvme_core.io_timeout=4294967295", "nvme_core.io_timeout", "4294967295"),
        ("empty=", "empty", ""),
        ("dyndbg=a=b", "dyndbg", "a=b"),
        ('a="b c"', "a", "b c"),
        ('"d=e f"', "d", "e f"),
        ('"alone"', "alone", None),
    ],
)
def test_a_token_is_name_and_value(token: str, name: str, value: Optional[str]) -> None:
    assert cmdline.split(token) == (name, value)


def test_values_end_where_arguments_of_init_begin() -> None:
    line = cmdline.tokens("tsc=reliable nvme-core.io_timeout=1 tsc=unstable -- tsc=nowatchdog")
    assert cmdline.values(line, "tsc") == ("reliable", "unstable")
    assert cmdline.values(line, "nvme_core.io_timeout") == ("1",)
