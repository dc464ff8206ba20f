# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Routes of each interface on this machine's kernel, in a network namespace of its own, with packets of a peer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, Dict

import pytest

from tests.support.kernel.routed_world import ADDRESSES

OWN = {address: [f"b{number % 3}"] * 2 for number, address in enumerate(ADDRESSES)}


@pytest.fixture(scope="module")
def life() -> Dict[str, Any]:
    """What was seen of a host with three interfaces that is tuned, disturbed, unplugged and restored."""
    command = ["unshare", "--map-root-user", "--net", sys.executable, "-m", "tests.support.kernel.routed_world"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    found: Dict[str, Any] = json.loads(done.stdout)
    return found


def first(answers: Dict[str, Any]) -> bool:
    """Whether all answers came by the first interface; near ones of IPv6 may come by any, as all lead to the subnet."""
    return all(far == "b0" and (near == "b0" or ":" in address) for address, (near, far) in answers.items())


def test_answers_leave_by_the_interface_on_which_the_question_came(life: Dict[str, Any]) -> None:
    assert first(life["untuned"]), "the kernel does it by itself"
    assert not life["applied"]["failed"], life["applied"]
    assert life["tuned"] == OWN


def test_a_check_shows_what_a_run_does_and_changes_nothing(life: Dict[str, Any]) -> None:
    assert life["after check"] == life["before"]
    assert life["checked"]["actions"] == life["applied"]["actions"]
    assert [action["what"] for action in life["applied"]["actions"]].count("routes.paths") == 5
    assert not life["again"]["changed"]


def test_the_main_table_stays_as_it_is(life: Dict[str, Any]) -> None:
    for family in ("routes -4", "routes -6"):
        new = [line for line in life["state tuned"][family] if line not in life["before"][family]]
        assert len(new) == 4
        assert all(" table 27000" in line and " proto kernel " in line for line in new), "networkd would remove them"
        assert not [line for line in life["before"][family] if line not in life["state tuned"][family]]


def test_rules_are_of_a_kind_that_networkd_leaves_alone(life: Dict[str, Any]) -> None:
    made = [line for line in life["rules by whom"] if line.startswith("27000:")]
    assert len(made) == 5
    assert all(" proto kernel" in line for line in made), made


def test_restore_leaves_nothing_behind(life: Dict[str, Any]) -> None:
    assert life["restored"]["changed"]
    assert life["after restore"] == life["before"]
    assert first(life["restored answers"])


def test_routes_that_went_are_made_again(life: Dict[str, Any]) -> None:
    assert life["repaired"]["changed"]
    assert life["after repair"] == "b1"


def test_a_look_of_the_unit_sees_that_rules_or_routes_went(life: Dict[str, Any]) -> None:
    tuned, *lost, repaired = life["looks"]
    assert len({tuned, *lost}) == 4
    assert repaired == tuned


def test_an_address_that_moves_to_another_interface_answers_there(life: Dict[str, Any]) -> None:
    assert not life["moved"]["failed"], life["moved"]
    assert life["after move"] == "b2"
    assert not life["moved again"]["failed"], life["moved again"]
    assert not life["moved again"]["changed"]


def test_rules_that_the_kernel_does_not_list_are_not_taken_for_restored(life: Dict[str, Any]) -> None:
    assert not life["silent"]["changed"]
    assert "the kernel doesn't list its routes and rules" in json.dumps(life["silent"])


def test_the_rules_of_an_interface_that_left_go_with_it(life: Dict[str, Any]) -> None:
    assert not life["without a2"]["failed"], life["without a2"]
    assert not [line for line in life["rules without a2"] if ADDRESSES[2] in line or ADDRESSES[7] in line]
    assert not life["restored at last"]["failed"], life["restored at last"]
    assert not [line for line in life["at last"]["rules -4"] + life["at last"]["rules -6"] if line.startswith("27000:")]
