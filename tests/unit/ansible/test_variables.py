# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which variables are taken for a misspelt option, and which for the user's own."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, List, Mapping

import pytest
import yaml
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._ansible import interpreter, variables
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._ansible.variables import (
    as_typed,
    misspelt,
    of_a_role,
    require_limits,
    warn,
)

TUNE = "nearmetal.ec2.tune"
ROOT = Path(__file__).resolve().parents[3]
SEVERAL = """argument 'prove_seconds' is of type str and we were unable to convert to float: <class 'x'>
argument 'prove_guard' is of type str and we were unable to convert to dict: dictionary requested
prove_gurad. Supported parameters include: prove_guard, prove_seconds."""
MEANT = " an option of the role; is prove_guard meant?"


@pytest.mark.parametrize(
    ("module", "name", "meant"),
    [
        (TUNE, "tune_worload", "tune_workload"),
        (TUNE, "tune_exlude", "tune_exclude"),
        (TUNE, "tune_confim_within", "tune_confirm_within"),
        (TUNE, "tun_workload", "tune_workload"),
        (TUNE, "audit_failon", "audit_fail_on"),
        (TUNE, "restore_concern", "restore_concerns"),
        (TUNE, "prove_pair", "prove_pairs"),
        ("nearmetal.ec2.audit_report", "audit_base_line", "audit_baseline"),
        ("nearmetal.ec2.capture", "capture_dir", "capture_directory"),
        ("nearmetal.ec2.capture", "capture_directry", "capture_directory"),
        ("nearmetal.ec2.clocksource", "clocksource_sorce", "clocksource_source"),
        ("nearmetal.ec2.hugepages", "hugepage_thp", "hugepages_thp"),
        ("nearmetal.ec2.network_stack", "network_stack_somaxcon", "network_stack_somaxconn"),
    ],
)
def test_a_name_that_nearly_is_an_option(module: str, name: str, meant: str) -> None:
    assert misspelt([name, "ansible_host"], module) == {name: meant}


@pytest.mark.parametrize(
    "name",
    [
        *("cache_size", "web_root", "memory_limit", "jvm_options", "hpc_queue", "base_url"),
        *("audit_log_directory", "audit_rules", "benchmark_path", "prove_it", "restore_from", "tune", "tune_"),
        *("tuned_profile", "network_state", "network_interfaces", "ebs_volumes", "placement_group", "smt_enabled"),
        *("tune_result", "tune_serial", "tune_health_result", "audit_limits", "clocksource_result", "prove_result"),
        *("tune_workload", "tune_reboot_at_once", "audit_timeout", "ansible_workload", "my_tune_worload_notes"),
    ],
)
def test_a_name_that_is_an_option_or_the_users_own(name: str) -> None:
    for module in (TUNE, "nearmetal.ec2.clocksource", "nearmetal.ec2.audit_report"):
        assert misspelt([name], module) == {}


def test_a_variable_that_was_an_option_is_named() -> None:
    result = warn({"changed": False, "warnings": ["one"]}, "nearmetal.ec2.benchmark", {"benchmark_install": True})
    assert result["warnings"] == [
        "one",
        "the variable benchmark_install is no longer an option and has no effect: install the tools yourself",
    ]
    assert warn({}, TUNE, {"benchmark_name": "clock"}) == {}


def test_no_option_of_a_role_is_taken_for_another_ones() -> None:
    """Only the options of the verbs and of the module's role are loaded."""
    specs = {path.parts[-3]: path for path in (ROOT / "roles").glob("*/meta/argument_specs.yml")}
    names = [
        name
        for path in specs.values()
        for name in yaml.safe_load(path.read_text("utf-8"))["argument_specs"]["main"]["options"]
    ]
    assert len(names) > 200
    for role in specs:
        assert misspelt([*names, *(f"{name}_result" for name in specs)], f"nearmetal.ec2.{role}") == {}


def test_variables_of_other_roles_than_the_one_that_runs_are_left_alone() -> None:
    assert misspelt(["clocksource_sorce", "ebs_region"], TUNE) == {}
    assert misspelt(["clocksource_sorce", "ebs_region"], "nearmetal.ec2.ebs") == {"ebs_region": "ebs_regions"}


@pytest.mark.parametrize(
    ("name", "role", "goal"),
    [
        ("hugepages_thp", "hugepages", "tune_concerns.hugepages.thp"),
        ("hugepage_thp", "hugepages", "tune_concerns.hugepages.thp"),
        ("network_stack_somaxconn", "network_stack", "tune_concerns.network_stack.somaxconn"),
        ("clocksource_owner_conflict", "clocksource", "tune_owner_conflict"),
        ("memory_limit", "", ""),
        ("hugepages_state", "", ""),
        ("network_interfaces_regions", "", ""),
    ],
)
def test_an_option_of_a_single_role_has_its_name_for_tune(name: str, role: str, goal: str) -> None:
    said = [f"{name} is an option of the role {role} and has no effect here: with tune say {goal}"] if role else []
    for module in (TUNE, "nearmetal.ec2.prove"):
        assert warn({}, module, {name: 1, "tune_workload": "web"}).get("warnings", []) == said
    assert warn({}, f"nearmetal.ec2.{role or 'memory'}", {name: 1}) in (
        {},
        {"warnings": [f"the variable {name} isn't an option and has no effect: is {role}_thp meant?"]},
    )


@pytest.mark.parametrize(
    ("module", "name", "meant"),
    [
        ("prove", "prove_gaurd", "prove_guard"),
        ("prove", "tune_waiver", "tune_waivers"),
        ("rollout", "rollout_freze", "rollout_freeze"),
        ("tune", "tune_exlude", "tune_exclude"),
        ("audit_report", "audit_failon", "audit_fail_on"),
        ("tune", "tune_bak", "tune_bake"),
        ("tune", "tune_onyl", "tune_only"),
        ("tune", "tune_olny", "tune_only"),
        ("prove", "tune_skip", "tune_exclude"),
        ("tune", "tune_exclusions", "tune_exclude"),
    ],
)
def test_a_misspelt_limit_is_no_mere_warning(module: str, name: str, meant: str) -> None:
    with pytest.raises(NearmetalError, match=f"the variable {name} isn't an option: is {meant} meant"):
        require_limits({name: 1}, f"nearmetal.ec2.{module}")
    for other in ("restore", "confirm", "host_facts", "instance_info", "clocksource"):
        require_limits({name: 1}, f"nearmetal.ec2.{other}")
    with pytest.raises(NearmetalError, match="is restore_concerns meant"):
        require_limits({"restore_concens": 1}, "nearmetal.ec2.restore")


@pytest.mark.parametrize(
    "name",
    [
        *("tune_worload", "tune_exclude", "tune_serial", "rollout_health_url", "prove_health_url", "tuned_only"),
        *("tuned_strict", "prove_result", "tune_health_result", "audit_rules", "rollout_result"),
    ],
)
def test_what_is_no_misspelt_limit_stops_nothing(name: str) -> None:
    for module in ("tune", "prove", "rollout", "audit_report", "benchmark"):
        require_limits({name: 1}, f"nearmetal.ec2.{module}")


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (
            "tune_worklod. Supported parameters include: tune_strict, tune_workload.",
            "tune_worklod isn't an option of the role; is tune_workload meant?",
        ),
        (
            "foo, tune_x. Supported parameters include: smt_state, smt_threads.",
            "foo, tune_x aren't options of the role; there are smt_state, smt_threads",
        ),
        (
            "argument 'prove_seconds' is of type str and we were unable to convert to float: <class 'ansible…",
            "prove_seconds must be a number",
        ),
        (
            "argument 'prove_guard' is of type <class 'str'> and we were unable to convert to dict: dictionary requ…",
            "prove_guard must be a mapping",
        ),
        (
            SEVERAL,
            "3 mistakes: • prove_seconds must be a number • prove_guard must be a mapping • prove_gurad isn't" + MEANT,
        ),
        ("value of smt_threads must be one of: on, off", "value of smt_threads must be one of: on, off"),
    ],
)
def test_a_wrong_variable_of_a_role_is_named_first(said: str, sentence: str) -> None:
    assert of_a_role(f"Validation of arguments failed:\n{said}") == sentence


@pytest.mark.parametrize(
    ("message", "of_the_module"),
    [
        ("tune_exclude[0]: clocksource has no knob", "exclude[0]: clocksource has no knob"),
        ("set tune_workload: web and tune_program: redis", "set workload: web and program: redis"),
        ("(role tune: tune_allow_not_ec2)", "(role tune: tune_allow_not_ec2)"),
        ("with tune_instance_type of the role tune", "with tune_instance_type of the role tune"),
        ("tune_serial", "tune_serial"),
    ],
)
def test_a_task_of_the_module_reads_of_its_options(message: str, of_the_module: str) -> None:
    role = SimpleNamespace(get_name=lambda: TUNE)
    assert as_typed(message, SimpleNamespace(action=TUNE, _role=role)) == message
    assert as_typed(message, SimpleNamespace(action=TUNE, _role=None)) == of_the_module


@pytest.mark.parametrize(
    ("core", "oldest"), [("2.16.14", 7), ("2.17.0", 7), ("2.18.1", 8), ("2.19.14", 8), ("2.21.5", 9), ("2.30.0", 9)]
)
def test_the_oldest_python_of_a_host(core: str, oldest: int) -> None:
    assert interpreter.minimum(core) == (3, oldest)


@pytest.mark.parametrize(
    ("used", "words"),
    [
        ("#!/usr/bin/env python3", ["/usr/bin/env", "python3"]),
        ("/usr/bin/env python3", ["/usr/bin/env", "python3"]),
        ("'/opt/our python/bin/python3' -E", ["/opt/our python/bin/python3", "-E"]),
        ("/opt/it's/python3", ["/opt/it's/python3"]),
        ("/usr/bin/python3", ["/usr/bin/python3"]),
        (None, ["/usr/bin/python3"]),
    ],
)
def test_the_words_of_an_interpreter(used: Any, words: List[str]) -> None:
    assert interpreter.interpreter_words(used) == words


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"rc": 127, "stdout": ""}, "the host has no Python at /usr/bin/env python3; with ansible-core"),
        (
            {"rc": 127, "stdout": "", "stderr": "/bin/sh: 1: python3: not found\n"},
            "the host has no Python at /usr/bin/env python3; with ansible-core",
        ),
        (
            {
                "rc": 127,
                "stdout": "",
                "stderr": "\npyenv: python3: command not found\n\nThe `python3' command exists in",
            },
            "/usr/bin/env python3 on the host doesn't start: pyenv: python3: command not found; with ansible-core",
        ),
        ({"rc": 126, "stdout": ""}, "the host has no Python at /usr/bin/env python3; with ansible-core"),
        (
            {"rc": 0, "stdout": "hello\nPython 3.6.15\n"},
            "/usr/bin/env python3 on the host is Python 3.6.15; with ",
        ),
        ({"rc": 0, "stdout": "Python 3.9.2\n"}, ""),
        ({"rc": -9, "stdout": ""}, ""),
        ({"rc": 1, "stdout": "no space left"}, ""),
    ],
)
def test_only_what_a_python_said_or_its_absence_is_the_cause(asked: Mapping[str, Any], said: str) -> None:
    cause = interpreter.cause("/usr/bin/env python3", asked, (3, 8))
    assert cause.startswith(said)
    assert bool(cause) == bool(said)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("m5.huge", "instance_type: there is no m5.huge: m5 has "),
        ("m5.large", ""),
        ("m99.huge", ""),
        ("m5", ""),
        (None, ""),
    ],
)
def test_a_size_that_no_type_of_its_family_has_is_named(name: Any, said: str) -> None:
    sentence = variables.unknown_type(name)
    assert sentence.startswith(said)
    assert bool(sentence) == bool(said)
