# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each seeded fault is judged separately."""

from __future__ import annotations

from pathlib import Path

from dev import mutate


def test_leftovers_of_a_faulted_run_are_removed_before_the_next(tmp_path: Path) -> None:
    original = tmp_path / "original"
    (original / "tests").mkdir(parents=True)
    for name in ("Makefile", "galaxy.yml", "tests/kept.py"):
        (original / name).write_text(name)
    slot = mutate.Slot(tmp_path / "slot", original)
    (slot.copy / "tests" / "left.py").write_text("")
    (slot.copy / "Makefile").write_text("exchanged")
    (slot.copy / "galaxy.yml").unlink()
    slot.clean()
    found = {str(path.relative_to(slot.copy)): path.read_text() for path in slot.copy.rglob("*.*") if path.is_file()}
    assert found == {"galaxy.yml": "galaxy.yml", "tests/kept.py": "tests/kept.py"}
    assert (slot.copy / "Makefile").read_text() == "Makefile"
