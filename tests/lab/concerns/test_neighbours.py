# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Beside tuned under several profiles, irqbalance, Docker and unattended-upgrades on a real kernel.

What is kept for the next boot is there after each reload and restart of the others, and after a boot; what isn't kept
has an owner that was named.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.host import Host, instance, planned
from tests.support.lab import ansible

WANTED = {"workload": "web"}
# tuned loads the second one after the active one: it owns a value that none of tuned's own profiles sets.
LAST = "[main]\nsummary=A profile of the site\n[sysctl]\nnet.ipv4.tcp_keepalive_time=600\n"
PROFILES = ("throughput-performance", "network-throughput", "virtual-guest", "virtual-guest and the site's")
# What nearmetal's files set at boot, as the files say it: `key = value` for sysctl, a path and a value for tmpfiles.
KEPT = r"""
sed -nE 's/^([a-z][^ =]*) *= *(.*)/\1=\2/p' /etc/sysctl.d/*nearmetal*
sed -nE 's/^w\+? +([^ ]+) +- +- +- +- +(.*)/\1=\2/p' /etc/tmpfiles.d/*nearmetal* 2>/dev/null; true
"""
# With `reserved_ports: auto` it follows what listens, and containerd has another port after each start.
FOLLOWING = "net.ipv4.ip_local_reserved_ports"
DISTURBANCES = (
    "systemctl restart tuned",
    "systemctl kill --signal=HUP tuned",
    "systemctl restart irqbalance",
    "systemctl restart containerd docker",
    "docker network create lab && docker network rm lab",
    "systemctl restart systemd-sysctl && systemd-tmpfiles --create",
    "udevadm trigger --action=change && udevadm settle",
    "systemctl start apt-daily-upgrade.service",
    "DEBIAN_FRONTEND=noninteractive dpkg-reconfigure linux-image-$(uname -r)",
)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("NEARMETAL_LAB_INSTANCES", str(tmp_path_factory.mktemp("instances")))
        with instance.running("containers", "neighbours") as running:
            yield running


def choose(host: Host, profile: str) -> None:
    """Let tuned have a profile, and nothing of nearmetal be left."""
    first, *others = profile.split(" and ")
    host.run("mkdir -p /etc/tuned/site")
    host.put(LAST.encode(), "/etc/tuned/site/tuned.conf")
    host.run(f"echo {'site' if others else ''} > /etc/tuned/post_loaded_profile; systemctl restart tuned")
    host.run(f"tuned-adm profile {first}")
    settle(host)


def settle(host: Host) -> None:
    """Wait until tuned has set its profile."""
    verified = "systemctl is-active --quiet tuned && busctl --json=short status com.redhat.tuned >/dev/null"
    assert host.wait(lambda: host.run(f"{verified} && echo yes || true").strip() == "yes", 600, 2.0)


def kept(host: Host) -> dict[str, str]:
    """Name or path → the value that the files of nearmetal give it at boot."""
    pairs = (line.split("=", 1) for line in host.run(KEPT).splitlines())
    return {name: " ".join(value.split()) for name, value in pairs if name != FOLLOWING}


def held(host: Host, names: dict[str, str]) -> dict[str, str]:
    """The same names and paths → what the kernel has, where that isn't an end of a longer choice."""
    said = {}
    for name, wanted in names.items():
        path = name if name.startswith("/") else "/proc/sys/" + name.replace(".", "/")
        text = " ".join(host.run(f"cat {path}").split())
        said[name] = wanted if f"[{wanted}]" in text else text
    return said


def audit(host: Host, folder: Path) -> list[str]:
    """Status and reason of each finding that isn't as wanted."""
    found = ansible.module("tune", host, folder, WANTED, "--check")["findings"]
    return [f"{one['status']}: {one['reason']}" for one in found if one["status"] != "ok"]


def tune(host: Host, folder: Path, profile: str) -> dict[str, str]:
    """Tune beside a profile of tuned; what is kept for the next boot, which is what the kernel has."""
    choose(host, profile)
    assert not ansible.module("tune", host, folder, WANTED).get("failed")
    files = kept(host)
    assert len(files) >= 5, files
    assert held(host, files) == files
    left = audit(host, folder)
    assert not any(reason.startswith("would_change") for reason in left), left
    of_site = [reason for reason in left if reason.startswith("refused") and " site)" in reason]
    assert bool(of_site) is ("site" in profile), left
    return files


def test_what_is_kept_is_there_whatever_the_others_do(host: Host, tmp_path: Path) -> None:
    files = tune(host, tmp_path, PROFILES[0])
    for command in DISTURBANCES:
        host.run(command, seconds=1800)
        settle(host)
        assert held(host, files) == files, command
    ansible.module("restore", host, tmp_path, {})


@pytest.mark.parametrize("profile", PROFILES)
def test_what_is_kept_is_there_after_a_boot_with_a_profile_of_tuned(host: Host, tmp_path: Path, profile: str) -> None:
    files = tune(host, tmp_path, profile)
    host.reboot()
    planned.wait(host)
    settle(host)
    assert held(host, files) == files
    again = ansible.module("tune", host, tmp_path, WANTED)
    assert {one["where"] for one in again["findings"] if one["status"] == "changed"} <= {FOLLOWING}, again
    assert not again["reboot_required"], again
    ansible.module("restore", host, tmp_path, {})
