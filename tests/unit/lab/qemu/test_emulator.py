# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which QEMU starts a shape: this machine's own, unless the shape's devices need a newer one."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab import shape
from lab.error import LabError
from lab.progress import Progress
from lab.qemu import emulator


def script(folder: Path, text: str) -> list[str]:
    """A command whose --version prints this; it is no QEMU."""
    path = folder / "program"
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="ascii")
    path.chmod(0o755)
    return [str(path)]


@pytest.mark.parametrize(
    ("name", "own", "wanted"),
    [
        ("default", "QEMU emulator version 7.2.22 (Debian 1:7.2)", "own"),
        ("default", "a fork without a version", "own"),
        ("sriov", "QEMU emulator version 7.2.22 (Debian 1:7.2)", "newer"),
        ("sriov", "QEMU emulator version 8.0.0", "own"),
        ("sriov", "QEMU emulator version 10.0.2", "own"),
    ],
)
def test_a_newer_qemu_is_taken_only_where_this_machine_s_is_too_old(
    name: str, own: str, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(emulator, "version", lambda _command: own)
    monkeypatch.setattr(emulator, "newer", lambda _name, _progress: ["newer"])
    command = emulator.program(shape.load(name), Progress())
    assert command == [{"own": "qemu-system-x86_64"}.get(wanted, wanted)]


def test_a_version_is_the_first_line_and_a_program_that_does_not_start_says_why(tmp_path: Path) -> None:
    assert (
        emulator.version(script(tmp_path, "echo QEMU emulator version 9.2; echo more")) == "QEMU emulator version 9.2"
    )
    with pytest.raises(LabError, match=r"program does not start: libaio\.so\.1: no such file"):
        emulator.version(script(tmp_path, "echo libaio.so.1: no such file >&2; exit 127"))


def test_a_version_that_says_nothing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulator, "version", lambda _command: "QEMU, a fork")
    with pytest.raises(LabError, match="no version that the lab understands: QEMU, a fork"):
        emulator.program(shape.load("sriov"), Progress())


def test_without_debian_the_archive_has_to_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulator.deps, "archive", lambda: "")
    with pytest.raises(LabError, match="set NEARMETAL_DEBIAN_MIRROR"):
        emulator.newer("qemu-system-x86_64", Progress())
