# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values that a driver took and refuses later: igb pairs its queues for virtual functions, and refuses tx_usecs then.

The unit keeps all other values, also those of the same table, says which one was refused, and sets it when it can.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.modules import network_stack, restore

from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of

Call = Callable[..., Dict[str, Any]]
RX, TX = 0, 4  # of ethtool's table of moderation
OPTIONS = {"rx_usecs": 50, "tx_usecs": 60, "somaxconn": 8192}
OWN = [3, 0, 0, 0, 3, *[0] * 17]


@pytest.fixture
def host(tmp_path: Path) -> FakeKernel:
    found = FakeKernel(tmp_path, files_of("nitro_big"))
    for name in ("ens5", "ens6"):
        found.nics.coalesce[name] = list(OWN)
    return found


def moderation(host: FakeKernel, name: str) -> "tuple[int, int]":
    return host.nics.coalesce[name][RX], host.nics.coalesce[name][TX]


def reset(host: FakeKernel, name: str) -> None:
    """The driver makes its queues again, with its own values."""
    host.nics.coalesce[name] = list(OWN)


def test_the_unit_keeps_what_a_driver_takes_and_names_what_it_refuses(
    host: FakeKernel, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not call(network_stack.main, host, **OPTIONS).get("failed")
    assert moderation(host, "ens6") == (50, 60)

    host.nics.paired.add("ens6")
    reset(host, "ens6")
    host.write_value("/proc/sys/net/core/somaxconn", "128\n")
    capsys.readouterr()
    assert command(["reapply"], host) == 1
    said = capsys.readouterr().out
    assert "network_stack.tx_usecs: the kernel refused tx_usecs 60 of ens6, whose driver is ena (EINVAL" in said
    assert "rx_usecs" not in said
    assert (moderation(host, "ens5"), moderation(host, "ens6")) == ((50, 60), (50, 0))
    assert Path(host.root, "proc/sys/net/core/somaxconn").read_text() == "8192\n"

    assert command(["reapply", "--if-changed"], host) == 1, "it is tried again"
    assert (moderation(host, "ens5"), moderation(host, "ens6")) == ((50, 60), (50, 0))

    host.nics.paired.clear()
    assert command(["reapply", "--if-changed"], host) == 0
    assert moderation(host, "ens6") == (50, 60)
    call(restore.main, host)
    assert (host.nics.coalesce["ens5"], host.nics.coalesce["ens6"]) == (OWN, OWN)


def test_a_users_run_fails_as_a_whole_and_names_the_refused_field_alone(host: FakeKernel, call: Call) -> None:
    host.nics.paired.add("ens6")
    failed = call(network_stack.main, host, **OPTIONS)
    assert failed["failed"]
    assert failed["msg"].startswith("network_stack: network_stack.tx_usecs: the kernel refused tx_usecs 60 of ens6")
    assert "rx_usecs" not in failed["msg"]
    assert (moderation(host, "ens5"), moderation(host, "ens6")) == ((3, 3), (3, 0))
    assert Path(host.root, "proc/sys/net/core/somaxconn").read_text() == "4096\n"
