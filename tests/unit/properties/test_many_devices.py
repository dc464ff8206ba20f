# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The work of a plan grows with the number of devices, not with its square: 128 volumes are a plain host of EC2.

Counted are the links that a plan reads of the kernel.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Optional

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.requests import tune_requests
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.run import plan_run

from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import nics_of
from tests.support.hosts import files_of

DISKS: Dict[str, Any] = {"block_storage": {"read_ahead_kb": 64, "nr_requests": 64, "scheduler": "none"}}
NICS: Dict[str, Any] = {"network_irq": {"policy": "spread"}}


class _Counting(FakeKernel):
    read = 0

    def link(self, path: str) -> Optional[str]:
        self.read += 1
        return super().link(path)


def _links(root: Path, kind: str, many: int) -> int:
    """The links that are read to plan a host with so many more of its devices."""
    files = files_of("metal")
    first = "nvme1n1" if kind == "disks" else nics_of(files)[0]
    of_device = {path: text for path, text in files.items() if f"/{first}/" in path or path == f"/sys/block/{first}"}
    for number in range(100, 100 + many):
        for path, text in of_device.items():
            name = f"{first[:-1]}{number}"
            files[path.replace(f"/{first}", f"/{name}")] = text.replace(f"/{first}", f"/{name}")
        if kind == "nics":
            files[f"/sys/class/net/{first[:-1]}{number}/device"] = f"-> ../../../0000:{number:02x}:1f.0"
    root.mkdir()
    host = _Counting(root, files)
    concerns = DISKS if kind == "disks" else NICS
    done = plan_run(host, lambda known: tune_requests((), concerns, {}, known))
    assert not [outcome.error for outcome in done.outcomes if outcome.error]
    return host.read


@pytest.mark.parametrize("kind", ["disks", "nics"])
def test_twice_the_devices_are_no_more_than_twice_the_work(kind: str, tmp_path: Path) -> None:
    few, some, many = (_links(tmp_path / str(count), kind, count) for count in (0, 20, 40))
    assert some > few
    assert many - few <= 2.2 * (some - few)
