# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/evidence.md: each technique has a row, and what a row points to exists and is of the kind that it claims."""

from __future__ import annotations

import re

from dev import ROOT, tree
from tests.support.pointers import trouble

PAGE = (ROOT / "docs" / "evidence.md").read_text("utf-8")
ID = re.compile(r"\bS[0-4]-[0-9]{2}\b")
# How many techniques each source has.
COUNTS = {"S0": 42, "S1": 16, "S2": 7, "S3": 10, "S4": 19}
# Kind → where its pointers lead.
PLACES = {
    "real kernel": r"(molecule/(?!ec2/)|tests/lab/).+\.py::",
    "recording": r"tests/unit/recorded/.+\.py::",
    "fake": r"tests/unit/(plan/.+\.json$|.+\.py::)",
    "API stand-in": r"tests/unit/(?:cloud|playbooks)/.+\.py::",
    "measured by us": r".+\.md#",
    "document only": r".+\.md#",
}
NONE = "—"


def rows() -> "dict[str, list[str]]":
    """Id → technique, what answers it, how it is shown."""
    found = {}
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if ID.fullmatch(cells[0]) and len(cells) == 4:
            found[cells[0]] = cells[1:]
    return found


def test_every_technique_has_a_row() -> None:
    expected = [f"{source}-{number:02}" for source, count in COUNTS.items() for number in range(1, count + 1)]
    assert list(rows()) == expected
    shared = tree.shared()
    for mission in shared.glob("knowledge/mission.md") if shared is not None else ():
        assert set(ID.findall(mission.read_text("utf-8"))) <= set(expected)


def test_every_row_says_how_its_answer_is_shown() -> None:
    wrong = []
    for name, (_says, answer, shown) in rows().items():
        if (answer == NONE or answer.startswith(f"{NONE} (")) != (shown == NONE):
            wrong.append(f"{name}: not answered and yet shown, or answered and not shown")
        for part in shown.split("; ") if shown != NONE else ():
            match = re.fullmatch(r"([A-Za-z -]+)(?: \(([^)]+)\))?: `([^`]+)`", part)
            if match is None or not re.match(PLACES.get(match.group(1), "$."), match.group(3)):
                wrong.append(f"{name}: {part!r} is no kind with a place of that kind")
            elif (match.group(1) == "real kernel") != bool(match.group(2)):
                wrong.append(f"{name}: {part!r}: when a test runs is said of those on a real kernel, and of no others")
            elif trouble(match.group(3)):
                wrong.append(f"{name}: {trouble(match.group(3))}")
    assert wrong == []


def test_every_link_of_the_page_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)]+)\)", PAGE)
    assert "#where-a-source-is-wrong" in links
    wrong = []
    for link in links:
        name, _hash, place = link.partition("#")
        page = (ROOT / "docs" / (name or "evidence.md")).resolve().relative_to(ROOT).as_posix()
        wrong.append(trouble(f"{page}#{place}" if place else page))
    assert set(wrong) == {""}


def test_every_id_that_is_cited_has_a_row() -> None:
    known = set(rows())
    cited = {}
    for name in tree.files("docs/*", "lab/*", "playbooks/*", "plugins/*", "roles/*", "README.md"):
        for found in ID.findall((ROOT / name).read_text("utf-8", "replace")):
            cited.setdefault(found, name)
    assert len(cited) > 50
    assert {found: name for found, name in cited.items() if found not in known} == {}
