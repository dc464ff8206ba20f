# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit on a real kernel under a real systemd: an image of a tuned host, and its bigger copy."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import instance, inventory, process
from lab.host import Host

CURRENT = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
# The same disk, started as another instance of another type.
BIGGER = """\
like = "burstable"
about = "an instance of a baked image: 4 CPUs on two nodes"
sockets = 2
cores = 2
threads = 1
nodes = 2
system.product = "m5.xlarge"
board.asset = "i-0fedcba9876543210"
"""


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    monkeypatch.setenv("NEARMETAL_LAB_INSTANCES", str(tmp_path / "instances"))
    with instance.running("burstable", "unit") as running:
        yield running


def play(name: str, host: Host, folder: Path, *arguments: str) -> None:
    hosts = folder / "hosts.ini"
    hosts.write_text(inventory.ansible([host]), encoding="utf-8")
    done = subprocess.run(
        ["ansible-playbook", "-i", str(hosts), f"nearmetal.ec2.{name}", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_a_baked_image_is_tuned_by_the_first_boot_of_a_bigger_copy(host: Host, tmp_path: Path) -> None:
    assert host.run("nproc").strip() == "2"
    slow = host.run(f"cat {CURRENT}").strip()
    assert slow == "hpet"
    play("tune", host, tmp_path, "-e", "tune_bake=true")
    assert host.run(f"cat {CURRENT}").strip() == slow
    assert host.run("systemctl is-enabled nearmetal.service nearmetal.timer").split() == ["enabled", "enabled"]
    assert "inactive" in host.run("systemctl is-active nearmetal.timer; true")
    instance_id = host.run("cat /sys/devices/virtual/dmi/id/board_asset_tag").strip()
    kept = host.run("cat /var/lib/nearmetal/*")
    assert instance_id not in kept
    shape = tmp_path / "bigger.toml"
    shape.write_text(BIGGER, encoding="utf-8")
    bigger = instance.resized(host, str(shape), outlive=False)
    assert bigger.run("nproc").strip() == "4"
    assert bigger.run("ls -d /sys/devices/system/node/node[0-9]").split()[1:] != []
    # On a machine that is slower than the 30 s that a boot gives it, the timer tries again.
    tuned = process.wait_until(lambda: bigger.run(f"cat {CURRENT}").strip() == "tsc", 600.0, 2.0)
    log = bigger.run("journalctl -b -u nearmetal -o short-monotonic")
    assert tuned, log
    assert "hpet → tsc" in log
    assert "Everything is as wanted" in bigger.run("nearmetal status")
    play("restore", bigger, tmp_path)
    assert bigger.run(f"cat {CURRENT}").strip() == slow
    left = "ls -d /etc/systemd/system/*nearmetal* /etc/systemd/system/*/nearmetal* /etc/udev/rules.d/*nearmetal*"
    assert bigger.run(f"{left} /usr/local/sbin/nearmetal /usr/local/lib/nearmetal /var/lib/nearmetal; true") == ""
