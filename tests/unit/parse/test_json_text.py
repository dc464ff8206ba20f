# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Foreign JSON: text that is nested too deep is refused before the decoder reaches its recursion limit."""

from __future__ import annotations

import gc
import json
import os
from typing import Any

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import json_text

QUOTES = ['"', '\\"', "[", '"["', "\\\\", '""', '"]"'] * 50
ANYTHING: Any = [
    QUOTES,
    "".join(QUOTES),
    {text: [text] for text in QUOTES},
    10**39,
    None,
    1.5,
    "",
    "[[[",
    '"{\\"',
    "\\",
    {"a]": [{"b": "}"}]},
    [[]] * 100,
    "[" * 5000,
    {"[": "{" * 5000},
]
REFUSED = {
    "lists": "[" * 5000,
    "tables": '{"a":' * 5000,
    "after a text": '["]", "\\"", ' + "[" * 65,
    "closed": "[" * 65 + "]" * 65,
    "closed before it opens": "]" * 10000 + "[" * 5000,
    "escaped outside a text": "\\[" * 3 + "[" * 5000,
    "a text without end": '"' + '\\"' * 200000,
    "nothing": "",
    "a number that is none": "[NaN]",
    "a number without end": '{"a": [-Infinity, 1]}',
    "very many digits": "9" * 4_000_000,
    "very many digits behind a point": "0." + "9" * 4_000_000,
    "very many lists": "[" + "[]," * 4_000_000 + "0]",
    "very many texts": '["' + '","' * 4_000_000 + '"]',
}


@pytest.mark.parametrize("value", ANYTHING)
def test_valid_json_is_read(value: Any) -> None:
    assert json_text.parse(json.dumps(value)) == value


def test_the_deepest_json_that_is_read() -> None:
    assert json_text.parse("[" * 64 + json.dumps("]") + "]" * 64)


@pytest.mark.parametrize("case", REFUSED)
def test_malformed_json_is_refused(case: str) -> None:
    with pytest.raises(ValueError, match=r"nested deeper|line 1 column|is no JSON|digits|more lists"):
        json_text.parse(REFUSED[case])


class Finalized:
    """Garbage whose finalizer needs more frames than Python 3.8 has left at its recursion limit."""

    def __init__(self) -> None:
        self.cycle = self

    def __del__(self) -> None:
        descend(60)


def descend(frames: int) -> None:
    """Use so many frames of the interpreter."""
    if frames:
        descend(frames - 1)


@pytest.mark.parametrize("allocations", range(900, 2000, 25))
def test_the_process_outlives_it_whenever_garbage_is_collected(allocations: int) -> None:
    child = os.fork()
    if not child:
        gc.collect()
        gc.disable()
        for _each in range(200):
            Finalized()
        gc.set_threshold(allocations)
        gc.enable()
        code = 1
        try:
            json_text.parse("[" * 5000)
        except ValueError:
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (KeyError("version"), "no 'version'"),
        (ValueError("one\ntwo"), "one"),
        (ValueError(), "nothing in it"),
        (TypeError("x" * 999), "x" * 200),
    ],
)
def test_what_is_wrong_is_one_short_line(error: Exception, words: str) -> None:
    assert isinstance(error, json_text.DAMAGE)
    assert json_text.reason(error) == words
