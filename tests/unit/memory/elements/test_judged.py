# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose each element of a table is, where a run of tune and restore shows it only after rare accidents."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._levers.registry import place_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._memory import elements

from tests.support.fresh_host import fresh


def test_only_what_nearmetal_set_can_have_been_set_by_somebody_since(tmp_path: Path) -> None:
    """Before a boot shows the originals of this boot, every other element is unknown, and nobody's."""
    governors = place_of(fresh(tmp_path, "metal"), ("power.governors", ""))
    judged = elements.judge(governors, None, [{"policy0": "performance", "policy99": "performance"}], whole=True)
    assert judged == elements.Judged({}, {}, {}, {"policy0": ("powersave", None)}), "CPU 99 never comes back"


def test_what_a_file_of_nearmetal_set_at_boot_has_an_unknown_original_and_nothing_else_has(tmp_path: Path) -> None:
    governors = place_of(fresh(tmp_path, "metal"), ("power.governors", ""))
    both = {"policy0": "performance", "policy1": "schedutil"}
    assert elements.with_kernel_choice(governors, both, {"policy0": "performance"}, None) == {"policy1": "schedutil"}
    assert elements.with_kernel_choice(governors, both, both, None) is None


@pytest.mark.parametrize(("kind", "nic"), [("nitro_big", "0000:00:05.0"), ("xen_pv", "vif-0")])
def test_a_queue_that_comes_has_the_kernels_choice_and_an_unknown_original_stays_so(
    kind: str, nic: str, tmp_path: Path
) -> None:
    steering = place_of(fresh(tmp_path, kind), ("network.rps", nic))
    assert elements.with_new_elements(steering, {"rx-0": "1"}, {"rx-9": "2"}) == {"rx-0": "1", "rx-9": ""}
    assert elements.with_new_elements(steering, None, {"rx-9": "2"}) is None


def test_only_interrupts_of_queues_that_went_are_to_be_placed_when_they_come_again(tmp_path: Path) -> None:
    interrupts = place_of(fresh(tmp_path, "nitro_big"), ("network.affinity", "0000:00:05.0"))
    original = {**interrupts.present_elements(), "9": "1"}
    gone = elements.RemovedElements({}, {"9": "1"})
    assert elements.removed_elements(interrupts, original, {"0": "3"}, {"0": "3"}) == gone
    (tmp_path / "proc/interrupts").write_text("CPU0\n")  # as long as the interface is down
    assert elements.removed_elements(interrupts, original, {"0": "3"}, {"0": "3"}) == gone
