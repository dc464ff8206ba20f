# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An owner who sets a knob to another value is named also while the knob has ours: the next boot, or start, decides."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.modules import block_storage, hugepages, network_stack, numa, restore

from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of

Call = Callable[..., Dict[str, Any]]
SITE = "/etc/sysctl.d/zz-site.conf"
OURS = "etc/sysctl.d/99-nearmetal-network_stack.conf"
SOMAXCONN = "proc/sys/net/core/somaxconn"
THP = "sys/kernel/mm/transparent_hugepage/enabled"
TUNED = {
    "/sys/fs/cgroup/system.slice/tuned.service/cgroup.procs": "812\n",
    "/etc/tuned/active_profile": "site\n",
    "/etc/tuned/site/tuned.conf": "[vm]\ntransparent_hugepages=never\n[sysctl]\nkernel.numa_balancing=1\n",
}


def statuses(result: Dict[str, Any], knob: str) -> List[Tuple[str, str]]:
    """Status and owner of a knob's findings."""
    return [(finding["status"], finding["owner"]) for finding in result["findings"] if finding["knob"] == knob]


def site(root: Path, somaxconn: int, running: int) -> FakeKernel:
    host = FakeKernel(root, files_of("nitro", {SITE: f"net.core.somaxconn = {somaxconn}\n"}))
    (root / SOMAXCONN).write_text(f"{running}\n")
    return host


def test_a_value_that_only_this_boot_has(tmp_path: Path, call: Call) -> None:
    host = site(tmp_path, somaxconn=128, running=8192)
    result = call(network_stack.main, host, somaxconn=8192, rmem_max=500000)
    assert statuses(result, "somaxconn") == [("refused", SITE)]
    assert statuses(result, "rmem_max") == [("changed", "")]
    assert "somaxconn" not in (tmp_path / OURS).read_text(), "a file that is read before the owner's keeps nothing"
    assert (tmp_path / SOMAXCONN).read_text() == "8192\n"


def test_an_owner_that_sets_the_same_value_is_no_conflict(tmp_path: Path, call: Call) -> None:
    host = site(tmp_path, somaxconn=8192, running=8192)
    assert statuses(call(network_stack.main, host, somaxconn=8192), "somaxconn") == [("ok", "")]
    assert "net.core.somaxconn = 8192" in (tmp_path / OURS).read_text()


def test_what_an_entry_gives_beside_an_owned_value_is_kept_for_the_next_boot(tmp_path: Path, call: Call) -> None:
    files = {**TUNED, "/etc/tuned/site/tuned.conf": "[disk]\nreadahead=512\n"}
    host = FakeKernel(tmp_path, files_of("metal", files))
    entry = {"kind": "instance_store", "read_ahead_kb": 4096, "nomerges": 2}
    result = call(block_storage.main, host, disks=[entry])
    assert statuses(result, "read_ahead_kb") == [("refused", "tuned")]
    rules = (tmp_path / "etc/udev/rules.d/90-nearmetal-block_storage.rules").read_text()
    assert '{queue/nomerges}="2"' in rules
    assert "read_ahead_kb" not in rules


def test_taken_over_and_left_again(tmp_path: Path, call: Call) -> None:
    host = site(tmp_path, somaxconn=128, running=128)
    for status in ("changed", "ok"):
        taken = call(network_stack.main, host, somaxconn=8192, owner_conflict="take_over")
        assert [found[0] for found in statuses(taken, "somaxconn")] == [status, "advice"]
        assert statuses(taken, "somaxconn")[1] == ("advice", SITE)
    left = call(network_stack.main, host, somaxconn=8192)
    assert statuses(left, "somaxconn") == [("refused", SITE)]
    assert not (tmp_path / OURS).exists()
    assert (tmp_path / SOMAXCONN).read_text() == "8192\n", "the knob itself is left alone"
    assert not call(network_stack.main, host, somaxconn=8192)["changed"]
    call(restore.main, host)
    assert (tmp_path / SOMAXCONN).read_text() == "128\n", "the way back is still known"


def test_an_owner_that_was_installed_later(tmp_path: Path, call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    host = site(tmp_path, somaxconn=8192, running=4096)
    assert call(network_stack.main, host, somaxconn=8192)["changed"]
    (tmp_path / SITE.lstrip("/")).write_text("net.core.somaxconn = 128\n")
    capsys.readouterr()
    assert command(["status"], host) == 1, "our file isn't what the next boot goes by"
    output = " ".join(capsys.readouterr().out.split())
    assert f"refused somaxconn: {SITE} sets net.core.somaxconn = 128 and is read after nearmetal's file" in output


@pytest.mark.parametrize(
    ("main", "options", "knob", "owned"),
    [
        (hugepages.main, {"thp": "madvise"}, "thp", True),
        (hugepages.main, {"thp": "never"}, "thp", False),
        (numa.main, {"balancing": "disabled"}, "balancing", True),
        (numa.main, {"balancing": "enabled"}, "balancing", False),
    ],
    ids=["thp", "thp of tuned's", "balancing", "balancing of tuned's"],
)
def test_knobs_that_tuned_sets_when_it_starts_again(
    tmp_path: Path, call: Call, main: Callable[[], None], options: Dict[str, Any], knob: str, owned: bool
) -> None:
    host = FakeKernel(tmp_path, files_of("metal"))
    assert not call(main, host, **options).get("failed")
    for path, text in TUNED.items():
        (tmp_path / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path.lstrip("/")).write_text(text)
    result = call(main, host, **options)
    assert [status for status, _owner in statuses(result, knob)] == ["refused" if owned else "ok"]
    assert (statuses(result, knob)[0][1] == "tuned") == owned
    assert (statuses(result, "persist") == [("ok", "nearmetal.ec2")]) != owned
