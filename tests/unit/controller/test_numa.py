# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""numa's real main() on a fake kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict

from ansible_collections.nearmetal.ec2.plugins.modules import numa, restore

from tests.support.boot_trees import debian
from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of

Call = Callable[..., Dict[str, Any]]
FILE = "/etc/sysctl.d/99-nearmetal-numa.conf"


def everything(host: FakeKernel) -> Dict[str, str]:
    root = Path(host.root)
    return {str(path): path.read_text() for path in root.rglob("*") if path.is_file() and path.name != "lock"}


def test_check_apply_check_apply_restore(tmp_path: Path, call: Call) -> None:
    host = FakeKernel(tmp_path, files_of("metal"))
    before = everything(host)
    wanted = {"balancing": "disabled", "zone_reclaim_mode": 0}
    checked = call(numa.main, host, check=True, **wanted)
    assert everything(host) == before
    applied = call(numa.main, host, **wanted)
    results = [checked, applied] + [call(numa.main, host, check=check, **wanted) for check in (True, False)]
    assert [result["changed"] for result in results] == [True, True, False, False]
    assert checked["diff"] == applied["diff"]
    assert (tmp_path / "proc/sys/kernel/numa_balancing").read_text() == "0\n"
    assert "kernel.numa_balancing = 0\n" in (tmp_path / FILE.lstrip("/")).read_text()
    assert call(restore.main, host)["changed"]
    assert everything(host) == before


def test_hidden_nodes_need_a_reboot_and_go_again(tmp_path: Path, call: Call) -> None:
    host = debian(tmp_path)
    assert not call(numa.main, host, nodes="hidden")["reboot_required"]
    assert call(numa.main, host, nodes="hidden", allow_hidden_nodes=True)["reboot_required"]
    assert host.boot().endswith(" numa=off")
    call(numa.main, host, state="restored")
    assert "numa=off" not in host.boot()
