# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sources of a rollout's metrics."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._rollout import metrics
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._rollout.metrics import Place

PLACES = [Place("web-1", "10.0.0.1"), Place("web 2; exit", "10.0.0.2")]


@pytest.mark.parametrize(
    ("command", "values"),
    [
        ("echo rate 12.5", [12.5, 12.5]),
        ("echo {{ host }} | wc -c", [6.0, 12.0]),
        ("echo {address} | cut -d. -f4", [1.0, 2.0]),
        ("test {host} = web-1 && echo 1e3", [1000.0, None]),
        ("echo 5; exit 1", [None, None]),
        ("echo nan", [None, None]),
        ("true", [None, None]),
        ("head -c 60000 /dev/zero | tr '\\0' x; echo ' 5'", [5.0, 5.0]),
        ("head -c 70000 /dev/zero | tr '\\0' x; echo ' 5'", [None, None]),
        ("exec >&-; exit 1", [None, None]),
    ],
)
def test_the_last_word_of_a_command_is_the_value_of_its_host(command: str, values: Any) -> None:
    assert list(metrics.by_command({"command": command}, PLACES, 10.0).values()) == values


def test_a_command_that_prints_without_end_is_ended_at_once() -> None:
    began = time.monotonic()
    assert metrics.by_command({"command": "yes 5"}, PLACES, 600.0) == {"web-1": None, "web 2; exit": None}
    assert time.monotonic() - began < 60


def test_a_command_that_hangs_has_no_value_and_leaves_nothing_that_runs(tmp_path: Path) -> None:
    command = f"sh -c 'echo $$ > {tmp_path}/pid; exec sleep 600' | cat"
    assert metrics.by_command({"command": command}, PLACES[:1], 1.0) == {"web-1": None}
    state = Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}/stat")
    until = time.monotonic() + 30
    while _runs(state) and time.monotonic() < until:  # it was told to end, and needs a CPU for that
        os.sched_yield()
    assert not _runs(state)


@pytest.mark.parametrize("command", ["setsid sleep 60 & echo 5", "sleep 60 & echo 5", "exec >&-; sleep 60"])
def test_a_command_that_leaves_a_program_behind_is_not_waited_for(command: str) -> None:
    began = time.monotonic()
    assert metrics.by_command({"command": command}, PLACES[:1], 1.0) == {"web-1": None}
    assert time.monotonic() - began < 30


def _runs(state: Path) -> bool:
    try:
        return ") Z" not in state.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ({"better": "larger", "command": "true"}, "^rollout.metrics, entry 1: name is required$"),
        ({"name": "r", "command": "true"}, r"better is required"),
        ({"name": "r", "better": "more", "command": "true"}, "choose one of larger, smaller"),
        ({"name": "r", "better": "larger"}, "needs exactly one of command, prometheus"),
        ({"name": "r s", "better": "larger", "command": "true"}, "a letter, then"),
        (
            {"name": "r", "better": "larger", "command": "true", "margin": 0},
            "must be a number from 0.1 to 99, not 0",
        ),
        (
            {"name": "r", "better": "larger", "command": "curl -s {adress}"},
            r"^rollout\.metrics, entry 1 \(r\): \{adress\} stands for nothing; is \{address\} meant\?$",
        ),
        ({"name": "r", "better": "larger", "prometheus": 'r{instance=~"{{ hosts }}"}'}, r"is \{host\} meant"),
        (
            {"name": "r", "better": "larger", "cloudwatch": {"dimensions": {"InstanceId": "{instanceid}"}}},
            r"is \{instance_id\} meant",
        ),
    ],
)
def test_a_wrong_metric_is_said(metric: Dict[str, Any], words: str) -> None:
    with pytest.raises(NearmetalError, match=words):
        metrics.validated([metric], 5.0)


def test_a_metric_is_called_as_it_was_written_and_all_mistakes_are_said() -> None:
    given = [{"name": "r", "better": "bigger", "command": "true"}, {"better": "larger", "command": "true", "margn": 1}]
    with pytest.raises(NearmetalError) as raised:
        metrics.validated(given, 5.0)
    assert [line.partition(";")[0] for line in str(raised.value).split(" • ")] == [
        "3 mistakes:",
        "rollout.metrics, entry 1 (r): better can't be 'bigger'",
        "rollout.metrics, entry 2: margn isn't an option",
        "rollout.metrics, entry 2: name is required",
    ]


def test_what_braces_are_for_a_shell_or_a_query_is_left_alone() -> None:
    command = "awk '{print}' | jq '{cost}' | grep {hostname} | grep -c ${address} | sed 's/{a,b}//'; curl {host}"
    query = 'rate(requests{instance=~"{{ host }}"}[1m])'
    given = [
        {"name": "r", "better": "larger", "command": command},
        {"name": "q", "better": "larger", "prometheus": query},
    ]
    assert [metrics.validated([metric], 5.0)[0]["margin"] for metric in given] == [5.0, 5.0]


def test_two_metrics_have_two_names() -> None:
    metric = {"name": "r", "better": "larger", "command": "true"}
    with pytest.raises(NearmetalError, match="same name"):
        metrics.validated([metric, metric], 5.0)
