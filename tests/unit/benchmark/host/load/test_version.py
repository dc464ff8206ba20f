# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The version of a load: the programs that its command names, by what is in them."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.host.load import identify


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name, text, mode in (("bench", "one", 0o755), ("load.sh", "#!/bin/sh\n", 0o644), ("data", "1", 0o644)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(mode)
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def test_programs_and_scripts_count_and_data_does_not(programs: Path) -> None:
    command = f"bench -n 5 <{programs}/data | sh {programs}/load.sh; bench >>{programs}/pipe {programs} 'it''s'"
    expected = f"bench {digest(programs / 'bench')}, load.sh {digest(programs / 'load.sh')}"
    assert identify(command) == expected
    (programs / "data").write_text("2")
    assert identify(command) == expected
    (programs / "bench").write_text("two")
    assert (
        identify(command) == f"bench {digest(programs / 'bench')}, load.sh {digest(programs / 'load.sh')}" != expected
    )


@pytest.mark.parametrize("command", ["", "echo ops 1", "true '", "a/../b \0 -", "./nowhere"])
def test_a_command_that_names_no_file_has_none(command: str, programs: Path) -> None:
    assert identify(command) == ""


def test_of_many_programs_the_first_eight_are_named(programs: Path) -> None:
    for number in range(20):
        (programs / f"p{number}").write_text(str(number))
        (programs / f"p{number}").chmod(0o755)
    assert identify(" ".join(f"p{number}" for number in range(20))).count(", ") == 7
