# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tools that the lab needs on this machine, and its output for people and programs."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path

import pytest

from lab import cli, deps, process, shape
from lab.error import LabError
from lab.host import Host, instance, inventory

HOST = Host("a", "default", "127.0.0.1", 4022, "root", "/c/my keys/identity", "/c/known", "/nowhere", 1, 0)
DISKS = 'disks = [{device = "virtio-blk-pci", size_mib = 64}, {device = "virtio-blk-pci", size_mib = 64}]'


def test_a_missing_tool_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deps, "search_path", lambda: "/nonexistent")
    with pytest.raises(LabError, match=r"needs .*mmdebstrap.*; run: python3 -m lab doctor --install"):
        deps.require()


def test_only_hosts_of_arm64_ask_for_its_emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deps, "search_path", lambda: "/nonexistent")
    assert {"qemu-system-arm", "qemu-user-static"}.isdisjoint(deps.missing())
    arm64 = shape.load("arm64").image.architecture
    assert {"qemu-system-arm", "qemu-user-static"} <= set(deps.missing(arm64))
    assert "qemu-system-x86" not in deps.missing(arm64)
    with pytest.raises(LabError, match=r"qemu-system-arm.*; run: python3 -m lab doctor --install --architecture arm64"):
        deps.require(arm64)


def test_the_archive_is_the_one_that_the_user_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARMETAL_DEBIAN_MIRROR", "http://mirror.example/debian")
    lines = deps.archive_sources(shape.load("default").image)
    assert len(lines) == 1
    assert lines[0].endswith("] http://mirror.example/debian bookworm main")


def test_the_archive_is_the_one_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    known = """Packages|Example|http://third.example/apt/|trixie
Packages|Debian|http://mirror.example/debian/|trixie
DEP-11|Debian|http://mirror.example/debian/|trixie
Packages|Debian|http://mirror.example/debian/|trixie-updates
Packages|Debian|http://mirror.example/security/|trixie-security
"""
    monkeypatch.setattr(deps, "_os_release", lambda: {"ID": "debian", "VERSION_CODENAME": "trixie"})
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0, known, ""))
    lines = [line.partition("] ")[2] for line in deps.archive_sources(shape.load("default").image)]
    assert lines == [
        "http://mirror.example/debian/ bookworm main",
        "http://mirror.example/security/ bookworm-security main",
    ]


def test_ubuntu_names_no_debian_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deps, "_os_release", lambda: {"ID": "ubuntu", "VERSION_CODENAME": "noble"})
    assert deps.archive_sources(shape.load("default").image) == []


def test_ansible_reads_the_inventory(tmp_path: Path) -> None:
    file = tmp_path / "hosts.ini"
    file.write_text(inventory.ansible([HOST]), encoding="utf-8")
    answer = subprocess.run(
        ["ansible-inventory", "-i", str(file), "--host", "a"], capture_output=True, text=True, check=True
    ).stdout
    assert '"ansible_port": 4022' in answer
    assert "-i '/c/my keys/identity'" in answer


def test_ssh_reads_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(inventory.ssh_config([HOST]), encoding="utf-8")
    answer = subprocess.run(["ssh", "-G", "-F", str(file), "a"], capture_output=True, text=True, check=True).stdout
    for line in ("hostname 127.0.0.1", "port 4022", "user root", "identityfile /c/my keys/identity"):
        assert line in answer.splitlines()
    assert "stricthostkeychecking true" in answer


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["up", "nope"], "no host is called nope; known:"),
        (["ssh", "nope"], "no host called nope is running"),
        (["resize", "nope", "default"], "no host called nope is running"),
        (["down", "nope"], "no host is called nope; see:"),
        (["down", "../.."], "no host is called ../..; see:"),
        (["down"], "takes the names of hosts, or --all"),
        (["up", "default", "--as", "A/B"], "a host's name is made of"),
    ],
)
def test_a_wrong_command_is_refused_in_one_sentence(
    arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NEARMETAL_LAB_INSTANCES", str(tmp_path))
    assert cli.main(arguments) == 1
    assert says in capsys.readouterr().err


def test_a_host_is_not_started_without_its_disks(tmp_path: Path) -> None:
    shapes = tmp_path / "more.toml"
    shapes.write_text('like = "burstable"\nabout = "two disks more"\n' + DISKS, encoding="utf-8")
    (tmp_path / "disk0.qcow2").touch()
    host = dataclasses.replace(HOST, folder=str(tmp_path))
    with pytest.raises(LabError, match=r"^a can't start as more: it lacks disk1\.qcow2; take a shape with its disks$"):
        instance.resized(host, str(shapes))


def test_a_program_that_fails_shows_the_end_of_its_output(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="status 3; the end of its output:\n  what went wrong"):
        process.run(["sh", "-c", r"printf 'what \033went wrong\n'; exit 3"], tmp_path / "log")
