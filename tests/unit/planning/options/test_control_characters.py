# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""No option takes a line break or another control character, on hosts that lack the knob neither."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict, Iterator, Mapping

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.registry import CONCERNS
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._planning.options import COMMON, validate
from ansible_collections.nearmetal.ec2.plugins.modules import network_stack, tune

from tests.support import fresh_host

Call = Callable[..., Dict[str, Any]]


def with_text(spec: Mapping[str, Mapping[str, Any]], text: str) -> Iterator[Dict[str, Any]]:
    """For each option that takes any text: this text, beside what its entry requires."""
    for option, rule in spec.items():
        if rule.get("type") == "list" and "options" in rule:
            yield from ({option: [entry]} for entry in with_text(rule["options"], text))
        elif rule.get("type") == "dict" and "options" in rule:
            yield from ({option: entry} for entry in with_text(rule["options"], text))
        elif "choices" not in rule and "str" in (rule.get("type", "str"), rule.get("elements")):
            required = {name: "x" for name, other in spec.items() if other.get("required")}
            yield {**required, option: [text] if rule.get("type") == "list" else text}


@pytest.mark.parametrize("concern", CONCERNS)
def test_each_option_of_text(concern: str) -> None:
    spec = {**COMMON, **CONCERNS[concern].options}
    for text in ("a\nb", "a\r", "\x1b[2J", "a\x00", "\x7f", "\x9b", "\u2028", "\x85"):
        for options in with_text(spec, text):
            name = r"(?:^| • )[a-z_]+(\.[a-z_]+(\[0\])?)+"
            sentence = rf"{name} must be one line without control characters, not '[ -~]+'(?:$| • )"
            with pytest.raises(NearmetalError, match=sentence):
                validate(concern, spec, options)


@pytest.mark.parametrize("option", ["governor", "platform_profile"])
def test_a_host_without_the_knob_keeps_no_such_value(option: str, tmp_path: Path, call: Call) -> None:
    result = call(tune.main, fresh_host.fresh(tmp_path, "nitro_burstable"), concerns={"cpu_power": {option: "a\nb"}})
    assert result["msg"] == f"cpu_power.{option} must be one line without control characters, not 'a\\nb'"
    assert not (tmp_path / "var/lib/nearmetal").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"waivers": [{"knob": "a\n", "reason": "x", "expires": "2026-02-28"}]}, "waivers[0].knob must be one line"),
        ({"waivers": [{"knob": "a", "reason": "\x1b]0;", "expires": "2026-02-28"}]}, "waivers[0].reason must be text"),
        ({"metrics_directory": "/var/lib\nEnvironment=A=B"}, "metrics_directory must be one line"),
    ],
)
def test_arguments_of_tune(arguments: Dict[str, Any], sentence: str, tmp_path: Path, call: Call) -> None:
    result = call(tune.main, fresh_host.fresh(tmp_path, "metal"), workload="web", **arguments)
    assert result["msg"].startswith(f"tune.{sentence} without control characters, not '")


def test_numbers_as_the_kernel_shows_them_are_apart_by_tabs(tmp_path: Path, call: Call) -> None:
    host = fresh_host.fresh(tmp_path, "nitro")
    result = call(network_stack.main, host, check=True, tcp_rmem="8192\t131072\t16777216", persist=False)
    assert result["diff"]["after"]["sysctl"] == {"net.ipv4.tcp_rmem": "8192 131072 16777216"}


def test_a_reason_may_have_several_lines(tmp_path: Path, call: Call) -> None:
    waiver = {"knob": "smt.threads", "reason": "the licence counts\nthreads\n", "expires": "2099-01-31"}
    result = call(tune.main, fresh_host.fresh(tmp_path, "metal"), check=True, workload="low_latency", waivers=[waiver])
    assert not result.get("failed"), result["msg"]
