# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Xen guests as data: the programs below them, and the way to reach them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lab import qemu, shape, xen
from lab.error import LabError
from lab.qemu.monitor import Monitor

GUESTS = ["xen_pv", "xen_pvh", "xen_hvm"]


@pytest.mark.parametrize("name", GUESTS)
def test_dom0_knows_how_to_start_the_guest(name: str) -> None:
    below = shape.load(name).xen
    assert below is not None
    described = (xen.DOM0 / f"etc/xen/lab-{below.guest}.cfg").read_text(encoding="utf-8")
    assert f'type = "{below.guest}"' in described
    assert f" lab.guest={below.guest}," in " ".join(qemu.command(shape.load(name), "tcg"))


@pytest.mark.parametrize("name", GUESTS)
def test_dom0_gets_no_virtio_device(name: str) -> None:
    arguments = qemu.command(shape.load(name), "tcg")
    assert not [argument for argument in arguments if "virtio" in argument]
    assert sum(argument.startswith("ide-hd,") for argument in arguments) == 2


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('xen = {guest = "kvm", image = "dom0"}', "xen.guest is pv, pvh, hvm, not kvm"),
        ('xen = {guest = "pv"}', "image is missing"),
        ('xen = {guest = "pv", image = "dom0", cpus = 4}', "unknown key cpus"),
        ('xen = "pv"', "xen must be a dict"),
        ('disks = [{device = "nvme", size_mib = 64}]', "disks and NICs are those of lab/dom0"),
        ('nics = ["e1000", "e1000"]', "disks and NICs are those of lab/dom0"),
    ],
)
def test_a_wrong_xen_is_refused_by_name(tmp_path: Path, text: str, names: str) -> None:
    base = "default" if text.startswith("xen") else "xen_pv"
    file = tmp_path / "mine.toml"
    file.write_text(f'like = "{base}"\nabout = "x"\n{text}\n', encoding="utf-8")
    with pytest.raises(LabError, match=re.escape(names)):
        shape.load(str(file))


def test_the_guest_and_dom0_have_each_a_port(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = """Hub -1 (net0):
  Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ
  TCP[HOST_FORWARD]  14       127.0.0.1 41001        10.0.2.4    22     0     0
  TCP[HOST_FORWARD]  13       127.0.0.1 41002       10.0.2.15    22     0     0
"""
    monkeypatch.setattr(Monitor, "human", lambda self, line: answer)
    monitor = Monitor(Path("/nowhere"))
    assert (monitor.ssh_port(), monitor.ssh_port(qemu.DOM0_ADDRESS)) == (41002, 41001)
    with pytest.raises(LabError, match="no port"):
        monitor.ssh_port("10.0.2.1")
