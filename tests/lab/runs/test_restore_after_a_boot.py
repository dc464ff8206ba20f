# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tuned, rebooted, restored, tuned and restored again: a real kernel has each time what it has without nearmetal.

The tests follow each other on one host. What it has is read by its own programs, and once more after a boot that
nearmetal has nothing to do with.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.host import Host, instance, planned
from tests.support.lab import ansible

# Numbers of connections and entropy move by themselves, and those that a kernel computes from free memory differ a
# little from boot to boot.
MOVING = (
    "random",
    "nr_(open|hugepages)",
    "_nr |count|quota",
    "\\.(file-nr|dentry-state|inode-nr|inode-state|stat)",
    "pty.nr|ns_last_pid|aio-nr|rt6_stats|stable_secret",
    "neigh.*(time|jiffies)",
    "(reserve|min_free)_kbytes",
)
SETTINGS = f"sysctl -a 2>/dev/null | grep -E '^(vm|net|fs|kernel)\\.' | grep -vE '{'|'.join(MOVING)}'"
WORDS = "grep -r . /sys/kernel/mm/transparent_hugepage 2>/dev/null | grep -vE 'pages_collapsed|full_scans|stats' | sort"
WANTED: dict[str, Any] = {"tune_workload": "in_memory_database", "tune_concerns": {"memory": {"swappiness": 1}}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("restored")


@pytest.fixture(scope="module")
def host(folder: Path) -> Iterator[Host]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("NEARMETAL_LAB_INSTANCES", str(folder / "instances"))
        with instance.running("burstable", "restored") as running:
            yield running


@pytest.fixture(scope="module")
def before(host: Host) -> set[str]:
    return settings(host)


def settings(host: Host) -> set[str]:
    return {*host.run(SETTINGS).splitlines(), *host.run(WORDS).splitlines()}


def play(host: Host, folder: Path, playbook: str, **variables: object) -> str:
    done = ansible.run(ansible.playbook(playbook, ansible.inventory_of(folder, host), variables), folder)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_after_a_reboot_everything_is_given_back(host: Host, folder: Path, before: set[str]) -> None:
    play(host, folder, "tune", **WANTED)
    host.reboot()
    planned.wait(host)
    assert host.run("sysctl -n vm.swappiness").strip() == "1"
    printed = play(host, folder, "restore")
    print(printed)
    assert settings(host) ^ before == set()
    assert "a reboot" not in printed, printed


def test_a_second_tuning_is_given_back_too(host: Host, folder: Path, before: set[str]) -> None:
    play(host, folder, "tune", **WANTED)
    printed = play(host, folder, "restore")
    assert settings(host) ^ before == set()
    assert "a reboot" not in printed, printed


def test_what_waits_for_a_boot_is_named_until_then(host: Host, folder: Path, before: set[str]) -> None:
    """As after an upgrade of the kernel: the journal's originals are those of another one."""
    play(host, folder, "tune", **WANTED)
    host.run('sed -i \'s/"machine": "[0-9][^ ]*/"machine": "5.99.0/\' /var/lib/nearmetal/journal.json')
    host.reboot()
    planned.wait(host)
    for _time in range(2):
        printed = play(host, folder, "restore")
        assert "swappiness" in printed, printed
        assert "sysctl -w vm.swappiness=60" in printed.replace("\n", " ").replace("    ", ""), printed
    play(host, folder, "tune", **WANTED)
    assert "swappiness" in play(host, folder, "restore"), "it isn't taken for the host's own"
    host.reboot()
    assert settings(host) ^ before == set()
    assert "a reboot" not in play(host, folder, "restore")
