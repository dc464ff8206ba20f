# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The exit codes of `nearmetal`, which docs/unit.md has in one table."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent import command, subcommands
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.modules import tune

from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of

Call = Callable[..., Dict[str, Any]]
PAGE = Path(__file__).resolve().parents[4] / "docs/unit.md"
SOMAXCONN = "proc/sys/net/core/somaxconn"


def test_the_table_has_every_code() -> None:
    rows = re.findall(r"^\| `(\d+)` \|", PAGE.read_text("utf-8"), re.MULTILINE)
    codes = {0, 2, command.FAILED, subcommands.WAITS_FOR_BOOT, command.NO_RIGHT, command.INTERRUPTED}
    assert set(map(int, rows)) == codes


@pytest.mark.parametrize("words", [["status"], ["plan"], ["restore"], ["restore", "--check"], ["capture"]])
def test_no_right_to_read_is_no_drift(
    words: "list[str]", monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(WritableHost, "is_root", lambda self: False)
    assert command.main(words) == 77
    assert capsys.readouterr().err == "nearmetal: the journal is readable by root alone: run it with sudo\n"


def test_a_restore_with_check_says_what_it_would_do_and_changes_nothing(
    tmp_path: Path, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    host = FakeKernel(tmp_path, files_of("nitro"))
    call(tune.main, host, concerns={"network_stack": {"somaxconn": 8192}, "numa": {"balancing": "disabled"}})
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.name != "lock"}
    for words in (["restore", "--check"], ["restore", "network_stack", "--check"]):
        capsys.readouterr()
        assert command.main(words, host) == 0
        said = capsys.readouterr().out
        assert "8192 → 4096" in said
        assert ("numa" in said) == (len(words) == 2), "only the concern that is named"
        assert said.endswith("nothing was changed: this is what restore would do\n")
    assert {path: path.read_bytes() for path in files} == files
    assert command.main(["restore"], host) == 0
    assert (tmp_path / SOMAXCONN).read_text().strip() == "4096"
