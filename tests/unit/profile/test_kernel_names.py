# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The setting that hides the kernel's names is given back, whatever ends the profile."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.lease import confirmation
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.lease.expiry import expire
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._profile.kernel_names import shown

from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of

PATH = "/proc/sys/kernel/kptr_restrict"
MEMORY = ("var/lib/nearmetal", "run/nearmetal/dead-man.pyz", "run/systemd/system/nearmetal-dead-man.timer")


@pytest.fixture
def host(tmp_path: Path) -> FakeKernel:
    found = FakeKernel(tmp_path, files_of("nitro"))
    (tmp_path / PATH[1:]).write_text("2\n")
    return found


def is_as_before(host: FakeKernel) -> bool:
    return host.line(PATH) == "2" and not any(host.exists(f"/{path}") for path in MEMORY)


def test_it_is_set_for_the_time_of_the_profile(host: FakeKernel) -> None:
    with shown(host, 30):
        assert host.line(PATH) == "1"
        assert host.exists("/var/lib/nearmetal/dead-man.json")
    assert is_as_before(host)


def test_a_profile_that_fails_gives_it_back(host: FakeKernel) -> None:
    with pytest.raises(NearmetalError, match="perf failed"), shown(host, 30):
        raise NearmetalError("perf failed")
    assert is_as_before(host)


def test_whoever_confirms_meanwhile_does_not_keep_it(host: FakeKernel) -> None:
    with shown(host, 30):
        assert confirmation.confirm(host)
    assert is_as_before(host)
    assert not host.exists("/var/lib/nearmetal/journal.json")


def test_the_timer_gives_it_back_after_a_kill(host: FakeKernel) -> None:
    killed = shown(host, 30)
    killed.__enter__()
    assert host.line(PATH) == "1"
    [said] = expire(host, "dead-man")
    assert said.endswith("so sysctl kernel.kptr_restrict has its earlier value again")
    assert is_as_before(host)


@pytest.mark.parametrize("value", ["0", "1"])
def test_names_that_root_sees_need_nothing(host: FakeKernel, value: str) -> None:
    Path(host.real(PATH)).write_text(f"{value}\n")
    with shown(host, 30):
        assert host.line(PATH) == value
        assert not host.exists("/var/lib/nearmetal/dead-man.json")


def test_without_a_timer_nothing_is_changed(host: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeKernel, "booted", lambda _host: False)
    with pytest.raises(NearmetalError, match="stays 2: no timer would give it back"), shown(host, 30):
        raise AssertionError
    assert is_as_before(host)
