# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run left to another owner stays left at a boot, when that owner doesn't run yet."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.subcommands import OF_UNIT
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.requests import stored_requests
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.run import run
from ansible_collections.nearmetal.ec2.plugins.modules import tune

from tests.support.fresh_host import fresh

Call = Callable[..., Dict[str, Any]]
THP = "sys/kernel/mm/transparent_hugepage/enabled"
RUNS = "/sys/fs/cgroup/system.slice/{}.service/cgroup.procs"
OWNERS = {
    "tuned": {RUNS.format("tuned"): "501\n", "/etc/tuned/active_profile": "site\n"},
    "kubelet": {RUNS.format("kubelet"): "502\n"},
    "ostree": {"/run/ostree-booted": ""},
}


@pytest.mark.parametrize("owner", OWNERS)
def test_it_is_left_alone_until_the_next_run(
    owner: str, tmp_path: Path, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    host = fresh(tmp_path, "nitro")
    profile = tmp_path / "etc/tuned/site/tuned.conf"
    profile.parent.mkdir(parents=True)
    profile.write_text("[vm]\ntransparent_hugepages=madvise\n")
    later = {**host.hardware}
    host.replug({**host.hardware, **OWNERS[owner]})
    refused = call(tune.main, host, concerns={"hugepages": {"thp": "never"}})
    assert ("thp", "refused", owner) in {(f["knob"], f["status"], f["owner"]) for f in refused["findings"]}
    host.reboot("22222222-2222-3333-4444-555555555555", later)
    run(host, stored_requests, conditions=OF_UNIT)
    assert "[madvise]" in (tmp_path / THP).read_text()
    command(["status"], host)
    assert "(so found by the last run of tune" in " ".join(capsys.readouterr().out.split())
    call(tune.main, host, concerns={"hugepages": {"thp": "never"}})
    assert "[never]" in (tmp_path / THP).read_text()
