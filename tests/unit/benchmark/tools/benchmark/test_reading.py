# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each tool printed, and the figures that somebody else read from it: read/<benchmark>/*.json.

A case has `options`, `outputs` (texts, or names of recorded files beside it) and `metrics` with `details`, or `error`.
The recorded files are as the tool printed them; each begins its name with the tool's version. The figures of a case
were read by eye, by jq, or from the tool's other format, never by the parser under test.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.tools.registry import BENCHMARKS, options_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._words import LONGEST_SENTENCE
from hypothesis import given, settings
from hypothesis import strategies as st

CASES = Path(__file__).parents[1] / "read"
FILES = sorted(path.relative_to(CASES).as_posix() for path in CASES.glob("*/*.json"))


def outputs_of(name: str, case: Dict[str, Any]) -> List[str]:
    folder = (CASES / name).parent
    return [text if " " in text or not text else (folder / text).read_text("utf-8") for text in case["outputs"]]


def read(name: str, outputs: List[str], options: Dict[str, Any]) -> Any:
    benchmark = name.split("/")[0]
    return BENCHMARKS[benchmark].read(outputs, options_of(benchmark, options))


@pytest.mark.parametrize("name", FILES)
def test_an_output_is_read_as_its_case_says(name: str) -> None:
    case = json.loads((CASES / name).read_text("utf-8"))
    outputs = outputs_of(name, case)
    if "error" in case:
        with pytest.raises(NearmetalError) as raised:
            read(name, outputs, case["options"])
        assert str(raised.value) == case["error"]
        return
    found = read(name, outputs, case["options"])
    assert [[*metric[:1], pytest.approx(metric.value, rel=1e-9), *metric[2:]] for metric in found.metrics] == [
        list(metric) for metric in case["metrics"]
    ]
    assert dict(found.details) == case["details"]


@pytest.mark.parametrize(
    "name", [name for name in FILES if "error" not in json.loads((CASES / name).read_text("utf-8"))]
)
@settings(max_examples=30)
@given(data=st.data())
def test_an_output_that_was_cut_or_changed_is_read_or_refused_in_one_sentence(name: str, data: st.DataObject) -> None:
    case = json.loads((CASES / name).read_text("utf-8"))
    outputs = outputs_of(name, case)
    which = data.draw(st.integers(0, len(outputs) - 1))
    text = outputs[which]
    start = data.draw(st.integers(0, len(text)))
    junk = data.draw(st.sampled_from(["", "\0", "-1", "nan", "1e999", "null", "[" * 200, "{}", '"', "9" * 400, "٣"]))
    changed = text[:start] + junk + text[min(len(text), start + data.draw(st.integers(0, 40))) :]
    outputs[which] = changed if data.draw(st.booleans()) else text[:start] + junk
    error = ""
    try:
        found = read(name, outputs, case["options"])
        assert found.metrics or found.details["figures_at"] == "client"
        assert all(metric.value > 0 for metric in found.metrics)
    except NearmetalError as raised:
        error = str(raised)
    assert error.isprintable()
    assert len(error) <= LONGEST_SENTENCE
