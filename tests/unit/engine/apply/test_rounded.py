# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kernel makes another value of ours, as drivers that round do, and refuses the way back for a while."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._memory.journal import Journal
from ansible_collections.nearmetal.ec2.plugins.modules import memory, network_irq, restore, tune

from tests.support.fake_kernel import CLOCK, FakeKernel
from tests.support.hosts import files_of
from tests.support.sequences.faults import Killed

Call = Callable[..., Dict[str, Any]]
SWAPPINESS = "/proc/sys/vm/swappiness"
JOURNAL = "var/lib/nearmetal/journal.json"


class Rounding(FakeKernel):
    """It makes `made` of the first value written to `place`, and takes nothing after that until it is `mended`."""

    place, made = SWAPPINESS, "7"
    tries, mended, dies = 0, False, False

    def write_value(self, path: str, text: str) -> None:
        if path != self.place or self.mended:
            super().write_value(path, text)
            return
        self.tries += 1
        if self.tries > 1:
            raise OSError(errno.EIO, "Input/output error", path)
        super().write_value(path, f"{self.made}\n")
        if self.dies:
            raise Killed

    def value(self, path: str) -> str:
        return (Path(self.root) / path[1:]).read_text().strip()


@pytest.fixture
def host(tmp_path: Path) -> Rounding:
    return Rounding(tmp_path, files_of("xen_hvm"))


@pytest.mark.parametrize("on_failure", ["keep", "rollback"])
def test_the_original_of_a_value_that_could_not_be_undone_comes_back(
    host: Rounding, call: Call, on_failure: str
) -> None:
    failed = call(tune.main, host, concerns={"memory": {"swappiness": 1}}, on_failure=on_failure)
    assert "the kernel did not take 1 for sysctl vm.swappiness: it has 7; and undoing it failed" in failed["msg"]
    assert "the journal keeps the originals" in failed["msg"]
    host.mended = True
    done = call(restore.main, host)
    assert host.value(SWAPPINESS) == "60", done["msg"]
    assert not (Path(host.root) / JOURNAL).exists()


def test_the_next_run_brings_what_is_wanted_and_keeps_the_original(host: Rounding, call: Call) -> None:
    assert call(memory.main, host, swappiness=1)["failed"]
    host.mended = True
    assert not call(memory.main, host, swappiness=1).get("failed")
    assert not call(restore.main, host).get("failed")
    assert host.value(SWAPPINESS) == "60"


def test_what_somebody_sets_later_is_still_left_alone(host: Rounding, call: Call) -> None:
    assert call(memory.main, host, swappiness=1)["failed"]
    host.mended = True
    host.write_value(SWAPPINESS, "33\n")
    assert "somebody set it to 33" in json.dumps(call(restore.main, host))
    assert host.value(SWAPPINESS) == "33"


def test_a_value_of_a_run_that_ended_before_it_read_it_back_is_not_called_somebodys_alone(
    host: Rounding, call: Call
) -> None:
    host.dies = True
    with pytest.raises(Killed):
        call(memory.main, host, swappiness=1)
    (left,) = [finding for finding in call(restore.main, host)["findings"] if finding["knob"] == "swappiness"]
    assert left["reason"] == (
        "somebody set it to 7, or the kernel made it from 1, which a run of nearmetal wrote and could not verify,"
        " because the run was interrupted: left alone; before nearmetal it was 60; to set that: sysctl"
        " -w vm.swappiness=60"
    )
    assert host.value(SWAPPINESS) == "7"


def test_of_a_table_only_the_element_that_the_kernel_changed_is_nearmetals(tmp_path: Path, call: Call) -> None:
    host = Rounding(tmp_path, files_of("nitro_big"))
    places = sorted(Path(host.root).glob("proc/irq/*/smp_affinity_list"))
    before = {place: place.read_text() for place in places}
    call(network_irq.main, host, policy="spread")
    changed = [place for place in places if place.read_text() != before[place]]
    call(restore.main, host)
    host.place, host.made = f"/{changed[1].relative_to(host.root)}", "9"
    failed = call(network_irq.main, host, policy="spread")
    assert "undoing it failed" in failed["msg"]
    host.mended = True
    assert not call(restore.main, host).get("failed")
    assert {place: place.read_text() for place in places} == before


def test_a_rollback_that_cannot_be_recorded_is_reported_with_its_concern(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = FakeKernel(tmp_path, files_of("xen_hvm"))
    host.moods["/proc/sys/vm/swappiness"] = "EIO"
    real, full = Journal.reset, "/var/lib/nearmetal/journal.json: no space left on its file system"

    def reset(journal: Journal, entries: Any) -> None:
        if not entries:
            raise NearmetalError(full)
        real(journal, entries)

    monkeypatch.setattr(Journal, "reset", reset)
    concerns = {"clocksource": {"source": "tsc"}, "memory": {"swappiness": 1}}
    failed = call(tune.main, host, concerns=concerns, on_failure="rollback")
    assert "the kernel refused 1 for vm.swappiness" in failed["errors"]["memory"]
    assert f"the whole run was taken back; that could not be recorded: {full}" in failed["errors"]["clocksource"]
    assert (Path(host.root) / f"{CLOCK[1:]}/current_clocksource").read_text() == "xen\n"
