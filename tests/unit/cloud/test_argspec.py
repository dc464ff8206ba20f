# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of the modules that ask AWS, as an operator gets them wrong: one readable line, before anything is asked."""

from __future__ import annotations

import importlib
import json
from typing import Any, Dict

import pytest
from ansible.module_utils.testing import patch_module_args

from tests.support.aws.fake_aws import FakeAws

MODULES = (
    "cpu_credits",
    "ebs",
    "enhanced_networking",
    "instance_info",
    "instance_type_info",
    "network_interfaces",
    "placement",
    "sizing",
)
WRONG: Dict[str, Any] = {
    "infinite": {"timeout": float("inf")},
    "not a number": {"timeout": float("nan")},
    "true": {"timeout": True},
    "underscore": {"timeout": "4_096"},
    "other digits": {"timeout": "٤٠٩٦"},
    "nested": {"regions": {"eu-west-1": ["a"]}},
    "long": {"profile": "x" * 10**6},
    "long choice": {"assume_roles": ["y" * 10**6]},
    "unknown": {"inst\x1b[2Jance\nids": 1},
}


def result_of(name: str, options: Dict[str, Any], capsys: pytest.CaptureFixture[str]) -> Dict[str, Any]:
    main = importlib.import_module(f"ansible_collections.nearmetal.ec2.plugins.modules.{name}").main
    with patch_module_args({**options, "_ansible_check_mode": True}), pytest.raises(SystemExit):
        main()
    found: Dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", MODULES)
def test_a_wrong_option_is_one_readable_line(
    name: str, wrong: str, aws: FakeAws, capsys: pytest.CaptureFixture[str]
) -> None:
    result = result_of(name, WRONG[wrong], capsys)
    assert result["failed"]
    assert "exception" not in result
    (option,) = WRONG[wrong]
    assert result["msg"].startswith(f"{name}.{option}" if option.isidentifier() else f"{name}.'inst")
    assert result["msg"].isprintable()
    assert len(max(result["msg"].split(), key=len)) <= 300
    assert not aws.calls


def test_a_stop_has_no_limit_that_python_makes_of_a_mistake(aws: FakeAws, capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("stop_timeout", "stop_at_once"):
        result = result_of("enhanced_networking", {"instance_ids": [aws.add()], option: True}, capsys)
        assert result["msg"] == f"enhanced_networking.{option} must be a whole number, not true"
    assert not aws.calls


def test_a_fleet_has_more_instances_than_a_list_of_words(aws: FakeAws, capsys: pytest.CaptureFixture[str]) -> None:
    ids = [aws.add(number) for number in range(1001)]
    hosts = [{"instance_id": instance_id, "drivers_in_use": ["ena"]} for instance_id in ids]
    result = result_of("enhanced_networking", {"instance_ids": ids, "hosts": hosts, "unconfirmed": ids}, capsys)
    assert "failed" not in result, result["msg"]
    assert len(result["instances"]) == 1001


def test_a_region_that_does_not_exist_is_readable(aws: FakeAws, capsys: pytest.CaptureFixture[str]) -> None:
    result = result_of("placement", {"instance_ids": [aws.add()], "regions": ["\x1b[2J"]}, capsys)
    assert result["failed"]
    assert result["msg"].isprintable()
