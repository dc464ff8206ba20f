# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The changes that no test notices are of code that is there."""

from __future__ import annotations

from dev import ROOT
from dev.gates.rooms import UTILS
from dev.running import mutants


def test_each_answer_is_about_a_line_of_its_file() -> None:
    for row, entry in mutants.table().items():
        lines = {line.strip() for line in (ROOT / UTILS / row).read_text("utf-8").splitlines()}
        answers = entry.get("unnoticed", [])
        assert [answer["line"] for answer in answers if not set(answer["line"].split("\n")) <= lines] == [], row
        assert all(answer["why"] for answer in answers), row
        assert [name for name in entry["tests"] if not (ROOT / name).exists()] == [], row
