# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `nearmetal` says of a word that it doesn't know, and how bash completes those that it does."""

from __future__ import annotations

import subprocess
from typing import List

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["statsu"], "status"),
        (["restor", "clocksource"], "restore"),
        (["status", "--jsn"], "--json"),
        (["plan", "--form", "host.json"], "--from"),
    ],
)
def test_a_mistyped_word_is_answered_with_what_is_meant(
    words: List[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command(words)
    assert ended.value.code == 2
    assert capsys.readouterr().err.rstrip().endswith(f": did you mean {meant}?")


def test_a_word_that_resembles_none_gets_no_guess(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command(["xyzzy"])
    with pytest.raises(SystemExit):
        command(["capture", "--foo"])
    assert "did you mean" not in capsys.readouterr().err, "another command has --from"


@pytest.mark.parametrize("words", [["--help"], ["plann"], ["xyzzy"]])
def test_what_a_timer_runs_is_not_listed_to_people(words: List[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command(words)
    said = "".join(capsys.readouterr())
    assert "expire" not in said
    assert "restore" in said


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["sta"], {"status"}),
        (["restore", "--c"], {"--check"}),
        (["restore", "clocksource", "sm"], {"smt"}),
        (["plan", "--a"], {"--allow-not-ec2"}),
        (["re"], {"reapply", "restore"}),
        (["exp"], set()),
    ],
)
def test_bash_completes(typed: List[str], offered: "set[str]", capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["completion"]) == 0
    script = capsys.readouterr().out
    words = " ".join(["nearmetal", *typed])
    script += f'COMP_WORDS=({words}); COMP_CWORD={len(typed)}; _nearmetal; printf "%s\\n" "${{COMPREPLY[@]}}"\n'
    done = subprocess.run(["bash", "-u"], input=script, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == offered
    assert not done.stderr
