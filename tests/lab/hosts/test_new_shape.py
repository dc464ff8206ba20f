# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The example of lab/README.md, added as a user's own file, boots with the properties that it lists."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.host import Host, instance
from tests.support.lab.new_shape import example

ROOT = Path(__file__).resolve().parents[3]
COUNTS = "lscpu -p=CPU,CORE,SOCKET,NODE | grep -v '^#'"


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """Brought up by the documented command."""
    folder = tmp_path_factory.mktemp("lab")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEARMETAL_LAB_INSTANCES", str(folder / "instances"))
        words = [sys.executable, "-m", "lab", "up", str(example(folder)), "--as", "mine"]
        subprocess.run(words, cwd=ROOT, env=os.environ, stdin=subprocess.DEVNULL, check=True)
        try:
            yield instance.find("mine")
        finally:
            instance.down("mine")


def test_it_has_one_core_of_two_threads_and_half_a_gibibyte(host: Host) -> None:
    assert host.run(COUNTS).split() == ["0,0,0,0", "1,0,0,0"]
    assert 0.85 * 512 < int(host.run("free --mebi | awk '/^Mem:/ {print $2}'")) <= 512


def test_it_stands_for_its_type_and_has_its_disk(host: Host) -> None:
    assert host.run("cat /sys/class/dmi/id/product_name").strip() == "c5.large"
    disks = host.run("lsblk --nodeps --bytes --noheadings --output SERIAL,SIZE").splitlines()
    assert ["vol1", str(64 * 1024**2)] in [line.split() for line in disks]


def test_no_clock_source_is_forced_on_it(host: Host) -> None:
    command_line = host.run("cat /proc/cmdline")
    assert command_line.strip().endswith("tsc=reliable mitigations=off")
    assert "clocksource=" not in command_line
