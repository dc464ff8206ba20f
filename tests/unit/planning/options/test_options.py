# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The error message for an invalid option; nothing is written and nothing is guessed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._words import lines_of
from ansible_collections.nearmetal.ec2.plugins.modules import (
    block_storage,
    clocksource,
    confirm,
    network_facts,
    network_stack,
    restore,
    smt,
    tune,
)

from tests.support import fresh_host
from tests.support.sentence import require_sentence

Call = Callable[..., Dict[str, Any]]
INF, NAN = float("inf"), float("nan")
_INT = 2147483647
_SOMAXCONN = "network_stack.somaxconn"

# arguments of tune, what the message begins with
ARGUMENTS: List[Tuple[Dict[str, Any], str]] = [
    ({"concerns": False}, "tune.concerns must be a mapping, not false"),
    ({"concerns": ["numa"]}, "tune.concerns must be a mapping, not ['numa']"),
    ({"concerns": "numa"}, "tune.concerns must be a mapping, not 'numa'"),
    ({"concerns": {}}, "nothing to tune: tune_workload and tune_concerns are empty"),
    ({"workload_concerns": {"smt": False}}, "workload_concerns.smt must be a mapping of options, not false; to leave"),
    ({"workload": "../x"}, "workload '../x' is unknown; there are auto, which"),
    ({"workload": "w" * 4000}, "workload 'www"),
    ({"workload": {"web": True}}, "tune.workload must be a list, not {'web': True}: begin each of its entries"),
    ({"workload": False}, "tune.workload must be a list, not false: begin each of its entries with a dash"),
    ({"exclude": {"smt": "threads"}}, "tune.exclude must be a list, not {'smt': 'threads'}: begin each of its entries"),
    ({"exclude": [{"a": 1}]}, "tune.exclude[0] must be a word, not {'a': 1}"),
    ({"exclude": False}, "tune.exclude must be a list, not false"),
    ({"exclude": "smt"}, "tune_exclude[0] must be concern.knob, such as cpu_power.idle, not 'smt'"),
    ({"waivers": [7]}, "tune.waivers[0] must be a mapping of options, not 7"),
    (
        {"waivers": {"knob": "smt.threads"}},
        "tune.waivers must be a list, not {'knob': 'smt.threads'}: begin each of its",
    ),
    (
        {"waivers": [{"knob": "smt.threads", "reason": "x", "expires": "2099-01-31", "until": "x"}]},
        "tune.waivers[0].until isn't an option; tune.waivers[0] has expires",
    ),
    ({"waivers": [{"knob": "smt.threads", "reason": "x"}]}, "tune.waivers[0].expires is required"),
    (
        {"waivers": [{"knob": "smt.threads", "reason": "x", "expires": "2026-02-30"}]},
        "tune_waivers[0].expires must be the last day of the waiver, such as 2027-01-31, not '2026-02-30'",
    ),
    ({"prune": "perhaps"}, "tune.prune is true or false, not 'perhaps'"),
    ({"on_failure": "panic"}, "tune.on_failure can't be 'panic'; choose one of keep, rollback"),
    ({"confirm_within": 1.5}, "tune.confirm_within must be a whole number"),
    ({"tune_workload": "web"}, "tune.tune_workload isn't an option; tune has workload, allow_not_ec2, bake,"),
]

# A single module reports the same, before Ansible converts the value.
ALONE: List[Tuple[Any, Dict[str, Any], str]] = [
    (network_stack, {"somaxconn": "4_096"}, f"{_SOMAXCONN} must be a whole number from 1 to {_INT}, not '4_096'"),
    (network_stack, {"somaxconn": True}, f"{_SOMAXCONN} must be a whole number from 1 to {_INT}, not true"),
    (network_stack, {"somaxconn": INF}, f"{_SOMAXCONN} must be a whole number from 1 to {_INT}, not inf"),
    (network_stack, {"z" * 10**6: 1}, "network_stack.'zzz"),
    (
        block_storage,
        {"disks": "nvme0n1"},
        "block_storage.disks must be a list, not 'nvme0n1': begin each of its entries with",
    ),
    (clocksource, {"source": False}, "clocksource.source must be a word, not a YAML boolean: put false in quotes"),
    (smt, {"threads": "q" * 4000}, "smt.threads can't be 'qqq"),
    (smt, {"threads": False}, "smt.threads can't be false; choose one of enabled, disabled, kernel"),
    (smt, {"state": "absent"}, "smt.state can't be 'absent'; choose one of present, restored"),
    (
        restore,
        {"concerns": {"smt": {}}},
        "restore.concerns must be a list, not {'smt': {}}: begin each of its entries with",
    ),
    (restore, {"concerns": ["nothing"]}, "concern 'nothing' is unknown; there are blkfront_check"),
    (confirm, {"now": True}, "confirm.now isn't an option; confirm has none"),
    (network_facts, {"sample_seconds": 61}, "network_facts.sample_seconds must be a whole number from 0 to 60, not 61"),
]


@pytest.mark.parametrize(
    ("arguments", "sentence"), ARGUMENTS, ids=[json.dumps(argument)[:40] for argument, _message in ARGUMENTS]
)
def test_arguments_of_tune(arguments: Dict[str, Any], sentence: str, tmp_path: Path, call: Call) -> None:
    require_sentence(call(tune.main, fresh_host.fresh(tmp_path, "metal"), check=True, **arguments), sentence)


@pytest.mark.parametrize(
    ("module", "options", "sentence"), ALONE, ids=[message[:40] for _module, _given, message in ALONE]
)
def test_a_module_by_itself(module: Any, options: Dict[str, Any], sentence: str, tmp_path: Path, call: Call) -> None:
    require_sentence(call(module.main, fresh_host.fresh(tmp_path, "metal"), check=True, **options), sentence)


@pytest.mark.parametrize(
    ("arguments", "sentences"),
    [
        (
            {"concerns": {"clok": {}, "smt": False, "network_stack": {"somaxcon": 5, "netdev_budget": "lots"}}},
            [
                "concern 'clok' is unknown; ",
                "network_stack.somaxcon isn't an option; ",
                "network_stack.netdev_budget must be a whole number",
                "concerns.smt must be a mapping",
            ],
        ),
        (
            {
                "workload": ["wbe"],
                "exclude": ["smt.theads", "smt"],
                "only": ["numma"],
                "concerns": {"smt": {"threads": 3}},
            },
            [
                "tune_exclude[0]: smt has no knob 'theads'",
                "tune_exclude[1] must be concern.knob",
                "tune_only[0] must be a concern or concern.knob",
            ],
        ),
        (
            {"concerns": {"block_storage": {"disks": [{"schedule": "none"}, {"device": "x", "nomerges": "no"}]}}},
            [
                "block_storage.disks[0].schedule isn't an option",
                "block_storage.disks[1].nomerges must be a whole number",
            ],
        ),
        (
            {"waivers": [{"knob": "smt.threads"}]},
            [f"tune.waivers[0].{name} is required" for name in ("reason", "expires")],
        ),
        ({"prune": "perhaps", "on_failure": "panic"}, ["tune.on_failure can't be 'panic'", "tune.prune is true or"]),
    ],
)
def test_all_mistakes_are_named_at_once_each_in_a_line(
    arguments: Dict[str, Any], sentences: List[str], tmp_path: Path, call: Call
) -> None:
    result = call(tune.main, fresh_host.fresh(tmp_path, "metal"), check=True, **arguments)
    assert result["failed"]
    first, *lines = lines_of(result["msg"])
    assert first == f"{len(lines)} mistakes:"
    missing = [sentence for sentence in sentences if not any(line.startswith(f"• {sentence}") for line in lines)]
    assert not missing, result["msg"]


def test_of_many_mistakes_the_first_are_named(tmp_path: Path, call: Call) -> None:
    given = {f"x{number}": {} for number in range(13)}
    first, *lines = lines_of(call(tune.main, fresh_host.fresh(tmp_path, "metal"), check=True, concerns=given)["msg"])
    assert first == "13 mistakes:"
    assert lines[-1] == f"• and {14 - len(lines)} more"
    assert len(lines) > 4


@pytest.mark.parametrize("given", [8192, "8192", " 8192\n", 8192.0])
def test_a_number_as_people_and_templates_write_it(given: Any, tmp_path: Path, call: Call) -> None:
    host = fresh_host.fresh(tmp_path, "nitro")
    result = call(network_stack.main, host, check=True, somaxconn=given, persist=False)
    assert result["diff"]["after"]["sysctl"] == {"net.core.somaxconn": "8192"}


@pytest.mark.parametrize("given", ["smt.threads,clocksource.source", ["smt.threads", "clocksource.source"]])
def test_a_list_of_words_may_be_one_text(given: Any, tmp_path: Path, call: Call) -> None:
    result = call(tune.main, fresh_host.fresh(tmp_path, "metal"), check=True, workload="low_latency", exclude=given)
    assert {"smt", "clocksource"} & {action["concern"] for action in result["actions"]} == set()


@pytest.mark.parametrize("given", ['{"numa": {"balancing": "disabled"}}', {"numa": {"balancing": "disabled"}}])
def test_a_mapping_may_be_json_as_the_command_line_hands_it_over(given: Any, tmp_path: Path, call: Call) -> None:
    result = call(tune.main, fresh_host.fresh(tmp_path, "metal"), check=True, concerns=given)
    assert result["diff"]["after"]["sysctl"] == {"kernel.numa_balancing": "0"}


def test_null_is_an_option_left_out(tmp_path: Path, call: Call) -> None:
    host = fresh_host.fresh(tmp_path, "metal")
    for null in ({"balancing": "disabled"}, {"balancing": "disabled", "persist": None, "nodes": None}):
        result = call(tune.main, host, check=True, concerns={"numa": null})
        assert "numa: would change kernel.numa_balancing 1 → 0, persisted, no reboot" in result["msg"]


def test_a_concern_without_options_gets_those_of_the_workload(tmp_path: Path, call: Call) -> None:
    host = fresh_host.fresh(tmp_path, "metal")
    plain, null, empty = (
        call(tune.main, host, check=True, workload="low_latency", concerns=concerns)
        for concerns in ({}, {"smt": None}, {"smt": {}})
    )
    assert plain["actions"] == null["actions"] == empty["actions"]
    assert "smt: would change" in plain["msg"]


def test_a_refusal_for_this_host_stays_a_finding(tmp_path: Path, call: Call) -> None:
    host = fresh_host.fresh(tmp_path, "metal")
    result = call(tune.main, host, check=True, concerns={"memory": {"min_free_kbytes": 2**31 - 1}})
    assert "memory: refused: 2147483647 kB is more than 5% of this host's memory" in result["msg"]
