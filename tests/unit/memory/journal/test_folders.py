# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that is killed where it makes or removes a folder: the next restore leaves no folder of nearmetal."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any, Callable, Dict, Set

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._host import store
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.modules import restore, tune

from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import booted
from tests.support.hosts import files_of
from tests.support.sequences.faults import Killed

Call = Callable[..., Dict[str, Any]]
_WANTED = {
    "network_irq": {"policy": "dedicated", "compute_units": ["app.service"]},
    "hugepages": {"mount": {"path": "/srv/huge-pages"}},
}
_MADE = {
    "/etc/nearmetal",
    "/etc/systemd/system-generators",
    "/srv/huge-pages",
    "/usr/local/lib/nearmetal",
    "/var/lib/nearmetal",
}


class Nth:
    """Kills the run at its nth call."""

    def __init__(self, number: int) -> None:
        self.remaining = number

    def reached(self) -> bool:
        self.remaining -= 1
        return self.remaining == 0


def folders(host: FakeKernel) -> Set[str]:
    """Every folder on a disk."""
    walks = (os.walk(f"{host.root}{top}") for top in ("/etc", "/srv", "/usr", "/var"))
    return {path[len(host.root) :] for walk in walks for path, _folders, _files in walk}


@pytest.fixture
def host(tmp_path: Path, call: Call) -> FakeKernel:
    """A host that was restored before, which has made the folders of the distribution."""
    host = booted(tmp_path, files_of("metal", {"/sys/devices/system/cpu/online": "0-15\n"}))
    call(tune.main, host, concerns=_WANTED)
    call(restore.main, host)
    return host


def require_no_folder_left(
    host: FakeKernel, call: Call, monkeypatch: pytest.MonkeyPatch, name: str, die: Callable[..., None]
) -> None:
    """Kill a tune and its restore at each call of the store's function `name`, where `die` ends the run."""
    before, function = folders(host), getattr(store, name)
    left: Set[str] = set()
    for number in itertools.count(1):
        nth = Nth(number)

        def called(host: WritableHost, *arguments: Any, nth: Nth = nth, **named: Any) -> None:
            if nth.reached():
                die(host, *arguments, **named)
            function(host, *arguments, **named)

        monkeypatch.setattr(store, name, called)
        try:
            call(tune.main, host, concerns=_WANTED)
            assert folders(host) - before == _MADE
            call(restore.main, host)
        except Killed:
            left |= folders(host) - before
        monkeypatch.setattr(store, name, function)
        call(restore.main, host)
        assert folders(host) == before, f"killed at {number}"
        if nth.remaining > 0:
            break
    assert left == _MADE


def test_a_run_killed_before_it_removes_a_folder(host: FakeKernel, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(_host: WritableHost, _path: str) -> None:
        raise Killed

    require_no_folder_left(host, call, monkeypatch, "remove_empty", die)


def test_a_run_killed_after_it_made_a_folder(host: FakeKernel, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(host: WritableHost, path: str, _data: bytes, mode: int, folder_mode: int) -> None:
        with store.directory(host, os.path.dirname(path), create=folder_mode):
            raise Killed(mode)

    require_no_folder_left(host, call, monkeypatch, "replace_file", die)
