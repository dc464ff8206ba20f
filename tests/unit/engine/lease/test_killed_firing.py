# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A dead-man run that is killed at any write loses no original."""

from __future__ import annotations

import itertools
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Iterator

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.lease.record import CHANGE
from ansible_collections.nearmetal.ec2.plugins.module_utils._host import store
from ansible_collections.nearmetal.ec2.plugins.module_utils._memory import journal, stored
from ansible_collections.nearmetal.ec2.plugins.modules import confirm, restore

from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of
from tests.support.sequences.faults import Killed, Writes
from tests.unit.engine.lease.test_confirmation import current, cutting
from tests.unit.engine.lease.test_faults import Call, Systemd, source_wanted, traces, tuned

__all__ = ["cutting"]


class Firings:
    """Hosts whose dead-man run was killed, each at another of its writes, before or after it."""

    def __init__(self, folders: pytest.TempPathFactory, call: Call) -> None:
        self._folders = folders
        self._call = call

    def killed(self, after: bool, *confirmed: str, full: bool = False) -> Iterator[Systemd]:
        """Tune the `confirmed` sources, then hpet without a confirmation, until a run ends by itself.

        The disk takes no file of nearmetal during the dead-man run when it is `full`.
        """
        for at in itertools.count(1):
            host = Systemd(self._folders.mktemp("host"), files_of("xen_hvm"))
            for source in confirmed:
                tuned(self._call, host, source)
                assert not self._call(confirm.main, host).get("failed")
            tuned(self._call, host, "hpet")
            firing = Writes(host, {"kind": "kill", "at": at, "after": after})
            with firing.counted(), suppress(Killed), _no_room(host) if full else nullcontext():
                command(["expire", "dead-man"], host)
            yield host
            if firing.count < at:
                assert at > 5
                return


@contextmanager
def _no_room(host: FakeKernel) -> Iterator[None]:
    """Folders where the new versions of nearmetal's files would be written first."""
    folders = [Path(host.root) / store.temporary_path(path)[1:] for path in (CHANGE.path, journal.PATH, stored.PATH)]
    for folder in folders:
        folder.mkdir()
    try:
        yield
    finally:
        for folder in folders:
            folder.rmdir()


@pytest.fixture
def firings(tmp_path_factory: pytest.TempPathFactory, call: Call) -> Firings:
    return Firings(tmp_path_factory, call)


@pytest.mark.usefixtures("cutting")
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("after", [False, True])
def test_a_restore_brings_the_first_original_back(after: bool, full: bool, firings: Firings, call: Call) -> None:
    for number, host in enumerate(firings.killed(after, "tsc", full=full), 1):
        assert not call(restore.main, host).get("failed")
        assert current(host) == "xen", f"killed at write {number}"


@pytest.mark.usefixtures("cutting")
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("after", [False, True])
def test_nobody_confirms_what_was_put_back(after: bool, full: bool, firings: Firings, call: Call) -> None:
    refused = 0
    for number, host in enumerate(firings.killed(after, full=full), 1):
        put_back = current(host) == "xen"
        planned, answer = call(confirm.main, host, check=True), call(confirm.main, host)
        assert not (put_back and answer.get("changed")), f"killed at write {number}"
        if answer.get("failed"):
            refused += 1
            assert planned["msg"] == answer["msg"]
            assert answer["msg"].startswith("too late to confirm: the dead-man timer is putting")
            assert command(["expire", "dead-man"], host) == 0
            assert (current(host), traces(host)) == ("xen", [])
            assert not source_wanted(host)
    assert refused > 3
