# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An entry of the journal with a value of another type in any field: one sentence of ours, and no other concern."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.module_utils._memory.entry import Entry, data_of
from ansible_collections.nearmetal.ec2.plugins.module_utils._memory.journal import PATH

from tests.support.fake_kernel import CLOCK, FakeKernel
from tests.support.hosts import files_of

STRANGE: List[Any] = [None, True, 0, 99, -1.5, "", "x", [], [1], {}, {"a": {"b": 1}}]
BOOT = "11111111-2222-3333-4444-555555555555"
CLOCK_SOURCE = Entry("clocksource", "source", "clock.current", "", "xen", ("tsc",), BOOT, whole=True)
SWAPPINESS = Entry("memory", "swappiness", "sysctl", "vm.swappiness", "60", ("1",), BOOT, whole=True)


@pytest.mark.parametrize("field", data_of(SWAPPINESS))
def test_a_field_of_another_type_is_one_sentence(
    tmp_path: Path, field: str, capsys: pytest.CaptureFixture[str]
) -> None:
    host = FakeKernel(tmp_path, files_of("xen_hvm"))
    place = tmp_path / PATH[1:]
    for value in STRANGE:
        entries: List[Dict[str, Any]] = [data_of(CLOCK_SOURCE), {**data_of(SWAPPINESS), field: value}]
        host.write_value(f"{CLOCK}/current_clocksource", "tsc")
        place.parent.mkdir(mode=0o700, exist_ok=True)
        place.write_text(json.dumps({"version": 1, "nearmetal": "0.1.0", "instance": None, "entries": entries}))
        for name in ("status", "plan", "reapply", "restore"):
            assert command([name], host) in (0, 1), (field, value, name)
        said = capsys.readouterr()
        restored = (tmp_path / f"{CLOCK[1:]}/current_clocksource").read_text() == "xen\n"
        assert restored or f"{PATH} isn't a journal that nearmetal wrote" in said.err, (field, value, said)
        place.unlink(missing_ok=True)
