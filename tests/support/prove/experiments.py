# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of a run of prove on a host with a fake kernel, and the files that they leave there."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict, Set

from ansible_collections.nearmetal.ec2.plugins.modules import prove

from tests.support.fake_kernel import CLOCK, FakeKernel

Call = Callable[..., Dict[str, Any]]
CURRENT = f"{CLOCK}/current_clocksource"
JOURNAL = "var/lib/nearmetal/journal.json"
WANTED = {"concerns": {"clocksource": {"source": "tsc"}}}
SWAPPINESS = "/proc/sys/vm/swappiness"
MEMORY = {"concerns": {"memory": {"swappiness": 1}}}
DISKS = {"block_storage": {"nomerges": 2, "method": "runtime"}}
BOTH = {"concerns": {**MEMORY["concerns"], **DISKS}}


def current(host: FakeKernel) -> str:
    return (Path(host.root) / CURRENT.lstrip("/")).read_text().strip()


def swappiness(host: FakeKernel) -> str:
    return (Path(host.root) / SWAPPINESS.lstrip("/")).read_text().strip()


def nomerges(host: FakeKernel) -> Set[str]:
    """How the disks of the host look for requests to merge."""
    return {place.read_text().strip() for place in Path(host.root).glob("sys/block/nvme*/queue/nomerges")}


def files(host: FakeKernel) -> Dict[str, str]:
    """Everything but the kernel's own files, by path."""
    found = sorted(path for folder in ("etc", "var", "run", "usr") for path in (Path(host.root) / folder).rglob("*"))
    return {
        str(path.relative_to(host.root)): path.read_text("utf-8", "replace")
        for path in found
        if path.is_file() and path.name != "lock"
    }


class Steps:
    """The steps of one run."""

    def __init__(self, call: Call, host: FakeKernel) -> None:
        self._call, self._host = call, host

    def __call__(self, step: str, **options: Any) -> Dict[str, Any]:
        given = {"tune": WANTED, "run": "r1", "settle": 0, "seconds": 1, "command": "true", **options}
        return self._call(prove.main, self._host, step=step, **given)
