# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kernel or driver that answers an error each time, after it has done what it was asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict

from ansible_collections.nearmetal.ec2.plugins.modules import restore, tune

from tests.support.fresh_host import fresh

Call = Callable[..., Dict[str, Any]]
SWAPPINESS = "/proc/sys/vm/swappiness"


def test_a_restore_is_done_if_its_values_are_there(tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "nitro")
    rings = list(host.nics.rings["ens5"])
    wanted = {"network_stack": {"rx_ring": 2048, "allow_disruptive": True}, "memory": {"swappiness": 1}}
    assert call(tune.main, host, concerns=wanted)["changed"]
    host.moods[SWAPPINESS] = "always late"
    host.nics.stubborn["ens5"] = "late"
    result = call(restore.main, host)
    assert not result.get("failed"), result["msg"]
    assert host.nics.rings["ens5"] == rings
    assert (tmp_path / SWAPPINESS[1:]).read_text() == "60\n"
    assert not (tmp_path / "var/lib/nearmetal/journal.json").exists()


def test_a_new_value_is_taken_back(tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "nitro")
    host.moods[SWAPPINESS] = "always late"
    assert call(tune.main, host, concerns={"memory": {"swappiness": 1}})["failed"]
    assert (tmp_path / SWAPPINESS[1:]).read_text() == "60\n"
