# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever an option of a benchmark is given, it is taken or refused in one sentence before anything starts."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.tools.benchmark import Machine
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.tools.registry import BENCHMARKS, options_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError

LONGEST_SENTENCE = 600
VALUES: Tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 10**30, -0.0, 1.5, float("nan"), float("inf"), b"x"),
    *("", "x", "-x", "1e999", "٣", "a\nb", "/../../x", "x" * 5000, [], {}, [None], ["x"] * 5000, {"a": 1}),
)
REQUIRED: Dict[str, Dict[str, Any]] = {
    "unixbench": {"path": "/opt/UnixBench", "tests": ["syscall"], "seconds": 10},
    "ebizzy": {"path": "/opt/ebizzy"},
}
PARTS: Tuple[Dict[str, Any], ...] = (
    {"part": "client", "server": "10.0.0.12"},
    {"part": "server", "address": "10.0.0.12"},
)


@pytest.mark.parametrize(
    ("name", "option"), [(name, option) for name in BENCHMARKS for option in (*BENCHMARKS[name].options, "unknown")]
)
def test_any_value_of_any_option_is_taken_or_refused_in_one_sentence(name: str, option: str) -> None:
    benchmark = BENCHMARKS[name]
    taken: "List[Any]" = []
    refused: "List[str]" = []
    for part in ({}, *PARTS) if "part" in benchmark.options else ({},):
        for value in VALUES:
            try:
                options = options_of(name, {**REQUIRED.get(name, {}), **part, option: value})
            except NearmetalError as error:
                refused.append(str(error))
                continue
            taken.append(value)
            fitted = benchmark.fit(options, Machine(4, 1024, 2, 2)) if benchmark.fit else options
            assert benchmark.limits(fitted).seconds > 0
            assert benchmark.run(fitted, "/folder").commands
    assert option != "unknown" or taken == []
    assert [words for words in refused if not words.isprintable() or len(words) > LONGEST_SENTENCE] == []
    assert refused


@pytest.mark.parametrize("directory", ["", "relative", "-x"])
def test_a_directory_is_an_absolute_path(directory: str) -> None:
    with pytest.raises(
        NearmetalError, match=r"^benchmark.options of disk has directory: '.*'; it must be the absolute "
    ):
        options_of("disk", {"directory": directory})


def test_a_directory_is_one_line() -> None:
    with pytest.raises(NearmetalError, match=r"^benchmark.options of disk.directory must be one line without control"):
        options_of("disk", {"directory": "/data\n"})
