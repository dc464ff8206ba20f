# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that prove reboots, and whose controller is killed, takes its kernel argument back and boots without it."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from lab.error import LabError
from lab.host import Host, instance
from tests.lab.measuring import test_prove

ARGUMENT = "transparent_hugepage=madvise"
ABANDONED = 195
LEFT = "find /var/lib/nearmetal /etc/systemd/system -name '*prove*' 2>/dev/null; true"
PAGES = "cat /sys/kernel/mm/transparent_hugepage/enabled"  # a kernel with less than 512 MiB begins with never
FILES = "cat /boot/grub/grub.cfg /etc/default/grub.d/* | sha256sum; ls -A /etc/default/grub.d /etc/systemd/system"


def test_a_host_that_boots_tuned_and_is_left_boots_untuned_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEARMETAL_LAB_INSTANCES", str(tmp_path / "instances"))
    with instance.running("burstable", "prove-reboot") as host:
        before, pages = host.run(FILES), host.run(PAGES)
        tuning = {"workload": ["base"], "concerns": {"hugepages": {"thp": "madvise", "method": "boot"}}}
        arguments = test_prove.command(
            host,
            tmp_path,
            "tsc",
            prove_reboot=True,
            prove_reboot_within=1800,
            prove_abandon_after=ABANDONED,
            tune_concerns=tuning["concerns"],
        )
        test_prove.kill_after(host, "sham pair 1, untuned", tmp_path / "log", arguments)
        log = (tmp_path / "log").read_text("utf-8")
        assert "hugepages.method" in log.partition("untuned against tuned (")[2].partition(")")[0]
        assert "the host is rebooted 18 to " in log
        [record] = tmp_path.glob("nearmetal-report/prove/*.jsonl")
        lines = map(json.loads, record.read_text("utf-8").splitlines()[1:])
        assert len({line["after"]["boot_id"] for line in lines}) == 2, "warm-up and the first sham measurement"

        options = {"step": "switch", "state": "tuned", "run": record.stem, "reboot": True, "tune": tuning}
        subprocess.run(
            ["ansible", "-i", "hosts.ini", "all", "-b", "-m", "nearmetal.ec2.prove", "-a", json.dumps(options)],
            cwd=tmp_path,
            env={**os.environ, "ANSIBLE_PIPELINING": "true"},
            check=True,
        )
        host.reboot()
        assert ARGUMENT in host.run("cat /proc/cmdline")
        started = time.monotonic()
        assert host.wait(lambda: _is_back(host), 900.0, 2.0), host.run("journalctl --no-pager -u 'nearmetal-prove*'")
        print(f"back {time.monotonic() - started:.0f} s after its last boot that was asked for")
        assert host.wait(lambda: host.run(LEFT) == "", 300.0, 2.0), host.run(LEFT)
        assert host.run(FILES) == before
        assert host.run(PAGES) == pages
        said = host.run("journalctl --no-pager -u 'nearmetal-prove*'")
        assert f"prove made no step for {ABANDONED} s: the host is as it was before run {record.stem}" in said


def _is_back(host: Host) -> bool:
    """Whether the running kernel was booted without the argument; False while the host doesn't answer."""
    try:
        return ARGUMENT not in host.run("cat /proc/cmdline", seconds=20.0)
    except LabError:
        return False
