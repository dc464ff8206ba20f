# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The output of a load's command, and the settings of a run: which are accepted, and how others are refused."""

from __future__ import annotations

from typing import Any, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.metrics import (
    Metric,
    metrics_of,
    other_kinds,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._prove.statistics.settings import Settings, settings_of
from hypothesis import given
from hypothesis import strategies as st

from tests.support.prove.proofs import refusal


def test_metrics_with_and_without_unit() -> None:
    output = (
        b"requests 1234.5 larger\n\np99 3.2 ms smaller\n seconds\t1e-3 smaller\r\nerrors -0.0 smaller\nup 9 s larger"
    )
    assert metrics_of(output) == (
        Metric("requests", 1234.5, "", "larger"),
        Metric("p99", 3.2, "ms", "smaller"),
        Metric("seconds", 0.001, "", "smaller"),
        Metric("errors", 0.0, "", "smaller"),
        Metric("up", 9.0, "s", "larger"),
    )


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (b"", "printed nothing"),
        (b"\n \n", "printed nothing"),
        (b"a 1 larger\na b larger\n", "line 2 .* the value 'b'.* must be a number, like 1234.5"),
        (b"a nan larger", "line 1 .* the value 'nan'"),
        (b"a inf larger", "line 1 .* the value 'inf'"),
        (b"a 1e999 larger", "line 1 .* the value '1e999'.* from 1e-100 to 1e"),
        (b"a 1e101 larger", "line 1 .* the value '1e101'"),
        (b"a 1e-101 larger", "line 1 .* the value '1e-101'"),
        (b"a 1e-999 larger", "line 1 .* the value '1e-999'.* must be 0, or from"),
        (b"a -3 larger", "line 1 .* the value '-3'.* must be 0, or from"),
        (b"a 1_000 larger", "line 1 .* the value '1_000'"),
        ("a ١٢ larger".encode(), "line 1 .* the value"),
        (b"a " + b"9" * 5000 + b" larger", "line 1 .* the value '999"),
        (b"a", "line 1 .* isn't `name value"),
        (b"requests per second: 12 a b c", "line 1 .* isn't `name value"),
        (b"a 1 ms slower", "line 1 .* must end with smaller or larger, after one unit, not with 'slower'"),
        (b"p99 3.2 ms", "line 1 .* has 'p99', but doesn't say which direction is better: end the line with smaller or"),
        ("a 1 larger\nb 2 µs".encode(), "line 2 .* has 'b', but doesn't say which direction"),
        (b"errors 12 1/s", "line 1 .* has 'errors', but doesn't say which direction"),
        (b"errors 0", "line 1 .* has 'errors', but doesn't say which direction"),
        (b"a 1 m\xc2\xb2", "line 1 .* the unit 'm²'"),
        (b"$(reboot) 1", r"line 1 .* names its metric '\$\(reboot\)'"),
        (b"9a 1", "line 1 .* names its metric '9a'"),
        (b"a" * 41 + b" 1", "line 1 .* names its metric"),
        (b"a 1 larger\nb \x1b[31m1", "line 2 .* control characters"),
        (b"a 1 larger\nb \xff1", "line 2 .* isn't UTF-8"),
        (b"a 1 larger\na 2 larger", "line 2 .* names a a second time"),
        (b"".join(b"m%d 1 larger\n" % number for number in range(10)), "line 9 .* metric 9; at most 8"),
        (b"a 1\n" * 20000, "the command printed more than 65536 bytes, the most that are read"),
    ],
)
def test_output_that_is_refused(output: bytes, words: str) -> None:
    with pytest.raises(NearmetalError, match=words) as refused:
        metrics_of(output)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (b"get 2 1/s larger", "without p99"),
        (b"get 2 1/s larger\np99 1 ms smaller\np50 1 ms smaller", "with p50"),
        (b"get 2 ops/s larger\np99 1 ms smaller", "get is in ops/s (larger is better), not in 1/s (larger is better)"),
        (b"get 2 larger\np99 1 ms smaller", "get is without a unit (larger is better), not in 1/s (larger is better)"),
        (b"get 2 1/s larger\np95 1 ms larger", "without p99; with p95"),
        (b"get 2 1/s larger\np99 1 ms larger", "p99 is in ms (larger is better), not in ms (smaller is better)"),
        (b"p99 1 ms smaller\nget 2 1/s larger", "in another order"),
        (b"get 3 1/s larger\np99 2 ms smaller", ""),
    ],
)
def test_metrics_that_differ_from_those_before_are_named(output: bytes, words: str) -> None:
    assert other_kinds(metrics_of(b"get 1 1/s larger\np99 3 ms smaller"), metrics_of(output)) == words


@given(st.binary(max_size=300))
def test_any_bytes_are_metrics_or_one_sentence(output: bytes) -> None:
    assert refusal(metrics_of, output).isprintable()


def test_settings_have_defaults_but_for_the_seed() -> None:
    assert settings_of({"seed": 4711}) == Settings(4711, 40, 5.0, 2.0, "", "better", 10.0, 10.0, 900.0)
    assert settings_of({"seed": 0, "pairs": 6, "effect": 3}).effect == 3.0
    with pytest.raises(NearmetalError, match="seed is absent"):
        settings_of({})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"pairs": 5}, "pairs must be a whole number from 6 to 200, not 5"),
        ({"pairs": 201}, "pairs must be .*, not 201"),
        ({"pairs": 12.0}, "pairs must be a whole number"),
        ({"pairs": True}, "pairs must be a whole number"),
        ({"pairs": "40"}, "pairs must be .*, not '40'"),
        ({"margin": float("nan")}, "margin must be a number from 0.1 to 50, not nan"),
        ({"margin": 0}, "margin must be .*, not 0"),
        ({"effect": -5}, "effect must be .*, not -5"),
        ({"settle": 601}, "settle must be .*, not 601"),
        ({"seconds": float("inf")}, "seconds must be .*, not inf"),
        ({"seed": -1}, "seed must be a whole number from 0 to 4294967295, not -1"),
        ({"timed": "yes"}, "timed must be true or false, not 'yes'"),
        ({"keep": "always"}, "keep must be better or not_worse, not 'always'"),
        ({"primary": "a b"}, "primary must be the name of a metric, not 'a b'"),
        ({"seconds": 100, "settle": 30, "abandon_after": 120}, "abandon_after is 120; a measurement of 100 s may"),
        ({"peeks": 3}, "'peeks' isn't a setting"),
        ({"reboot": "yes"}, "reboot must be true or false, not 'yes'"),
        ({"reboot": True, "each": True}, "each and reboot are both set"),
        ({"reboot": True, "abandon_after": 0}, "abandon_after is 0, and reboot is set"),
        ({"reboot": True, "abandon_after": 219}, "abandon_after is 219; a measurement of 10 s may take 220 s"),
        ({"reboot": True, "pairs": 41}, "pairs is 41, and reboot is set: each pair takes two reboots"),
        ({"reboot_within": 59}, "reboot_within must be a whole number from 60 to 3600, not 59"),
    ],
)
def test_settings_that_are_refused(options: Dict[str, Any], words: str) -> None:
    with pytest.raises(NearmetalError, match=words):
        settings_of({"seed": 1, **options})
