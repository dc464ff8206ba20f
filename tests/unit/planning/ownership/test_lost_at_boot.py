# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A value that a boot lost though a file of nearmetal keeps it: who sets it is looked for, and `persist: last` wins."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict, Mapping, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.subcommands import OF_UNIT
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.requests import stored_requests
from ansible_collections.nearmetal.ec2.plugins.module_utils._engine.run import run
from ansible_collections.nearmetal.ec2.plugins.modules import hugepages, restore, tune

from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import booted, routed
from tests.support.hosts import files_of, lay_out

Call = Callable[..., Dict[str, Any]]
BOOT = "22222222-2222-3333-4444-555555555555"
WANTED: Dict[str, Any] = {
    "cpu_power": {"governor": "performance"},
    "memory": {"swappiness": 1},
    "block_storage": {"read_ahead_kb": 64},
}

_UNIT = "/etc/systemd/system/late.service"
_WANTED_BY = {"/etc/systemd/system/multi-user.target.wants/late.service": f"-> {_UNIT}"}
# Who sets them, what of that a host shows, and what is said about it.
SETTERS: Dict[str, Tuple[Dict[str, str], str]] = {
    "nobody knows": ({}, ""),
    "nothing": ({}, ""),
    "has it open": (
        {"/proc/77/fd/9": "-> /proc/sys/vm/swappiness", "/proc/77/comm": "balancer\n"},
        "process 77, balancer",
    ),
    "a program": (
        {
            **_WANTED_BY,
            _UNIT: "[Service]\nExecStart=/opt/late --now\n",
            "/opt/late": "\x7fELF vm/swappiness scaling_governor",
        },
        "late.service names it, which starts after nearmetal's file",
    ),
    "a script of a script": (
        {
            **_WANTED_BY,
            _UNIT: "[Service]\nExecStart=/bin/sh /opt/late\n",
            "/opt/late": "#!/bin/sh\n. /opt/lib/late.sh\n",
            "/opt/lib/late.sh": "set_to vm.swappiness 60\nset_to scaling_governor powersave\n",
        },
        "late.service names it",
    ),
}


def host_of(root: Path, name: str, files: Mapping[str, str]) -> FakeKernel:
    host = booted(root, routed(files_of(name)))
    lay_out(root, files)
    return host


@pytest.mark.parametrize("somebody", SETTERS)
def test_a_value_that_this_boot_lost_is_not_called_persisted(somebody: str, tmp_path: Path, call: Call) -> None:
    files, said = SETTERS[somebody]
    host = host_of(tmp_path, "metal", {})
    call(tune.main, host, concerns=WANTED)
    host.reboot(BOOT)
    lay_out(tmp_path, files)
    if somebody != "nothing":
        for path in (tmp_path / "sys/devices/system/cpu/cpufreq").glob("policy*/scaling_governor"):
            path.write_text("powersave\n")
        (tmp_path / "proc/sys/vm/swappiness").write_text("60\n")
    result = call(tune.main, host, check=True, concerns=WANTED)
    kept = {f["concern"]: (f["status"], f["reason"]) for f in result["findings"] if f["knob"] == "persist"}
    assert kept["block_storage"] == ("ok", "persisted")
    lost = [kept["cpu_power"], kept["memory"]]
    if somebody == "nothing":
        assert lost == [("ok", "persisted")] * 2
        return
    assert [status for status, _reason in lost] == ["unknown"] * 2
    assert "drift: something sets it after nearmetal's file; last seen to be powersave" in lost[0][1]
    assert "last seen to be 60 (swappiness" in lost[1][1]
    assert said in lost[1][1]
    assert "persist: last sets it again" in lost[1][1]
    call(tune.main, host, concerns=WANTED)
    assert (tmp_path / "proc/sys/vm/swappiness").read_text() == "1\n"
    call(restore.main, host)
    assert not (tmp_path / "etc/sysctl.d/99-nearmetal-memory.conf").exists()


def test_what_somebody_writes_in_the_boot_in_which_it_was_set_is_no_word_about_boots(
    tmp_path: Path, call: Call
) -> None:
    host = host_of(tmp_path, "nitro", {})
    call(tune.main, host, concerns={"memory": WANTED["memory"]})
    (tmp_path / "proc/sys/vm/swappiness").write_text("60\n")
    result = call(tune.main, host, check=True, concerns={"memory": WANTED["memory"]})
    assert [finding["reason"] for finding in result["findings"] if finding["knob"] == "persist"] == ["persisted"]


def test_what_is_to_come_last_is_set_again_when_the_boot_is_over(tmp_path: Path, call: Call) -> None:
    host = host_of(
        tmp_path, "nitro", {"/etc/rc.local": "#!/bin/sh\necho never > /sys/kernel/mm/transparent_hugepage/enabled\n"}
    )
    place, unit = (
        tmp_path / "sys/kernel/mm/transparent_hugepage/enabled",
        tmp_path / "etc/systemd/system/nearmetal.service",
    )
    wanted: Dict[str, Any] = {"thp": "madvise", "owner_conflict": "take_over"}
    said = [f["reason"] for f in call(hugepages.main, host, persist="last", **wanted)["findings"]]
    assert "nearmetal.service plans it again at each boot, after multi-user.target" in said
    assert any("/etc/rc.local" in reason and "sets it again when the boot is over" in reason for reason in said)
    assert "After=irqbalance.service tuned.service multi-user.target" in unit.read_text()
    host.reboot(BOOT)
    assert "[never]" in place.read_text()
    run(host, stored_requests, conditions=OF_UNIT)
    assert "[madvise]" in place.read_text()
    assert not call(hugepages.main, host, check=True, persist="last", **wanted)["changed"]
    call(hugepages.main, host, persist="yes", **wanted)  # the word that variables of a command line have
    assert not unit.exists()
    assert "persist is true, false or last, not 'never'" in call(hugepages.main, host, persist="never", **wanted)["msg"]
    call(restore.main, host)
