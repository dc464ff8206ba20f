# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""JUnit files, in which every suite reports what it ran."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree


@dataclass(frozen=True)
class Case:
    """One thing that was tested, and how it ended."""

    suite: str
    name: str
    outcome: str  # passed | failed | skipped
    seconds: float = 0.0
    text: str = ""


def _outcome(element: ElementTree.Element) -> "tuple[str, str]":
    for tag in ("failure", "error", "skipped"):
        child = element.find(tag)
        if child is not None:
            words = child.text or child.get("message") or ""
            return ("skipped" if tag == "skipped" else "failed", words.strip())
    return ("passed", "")


def read(path: Path) -> "list[Case]":
    """The cases of one file. A file that is absent or broken counts as one failed case."""
    try:
        root = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError) as error:
        return [Case(path.stem, "its JUnit file", "failed", text=f"{path.name}: {error}")]
    cases = []
    for element in root.iter("testcase"):
        outcome, text = _outcome(element)
        name = "::".join(part for part in (element.get("classname"), element.get("name")) if part)
        cases.append(Case(path.stem, name, outcome, float(element.get("time") or 0), text))
    return cases


def write(path: Path, suite: str, cases: "list[Case]") -> None:
    """One file with these cases."""
    failed = sum(case.outcome == "failed" for case in cases)
    skipped = sum(case.outcome == "skipped" for case in cases)
    counts = {"tests": str(len(cases)), "failures": str(failed), "skipped": str(skipped), "errors": "0"}
    root = ElementTree.Element("testsuites")
    top = ElementTree.SubElement(root, "testsuite", {"name": suite, **counts})
    for case in cases:
        element = ElementTree.SubElement(
            top, "testcase", {"classname": suite, "name": case.name, "time": f"{case.seconds:.3f}"}
        )
        if case.outcome != "passed":
            tag = "failure" if case.outcome == "failed" else "skipped"
            text = _printable(case.text)
            first = (text.strip().splitlines() or [""])[0]
            ElementTree.SubElement(element, tag, {"message": first[:200]}).text = text
    path.parent.mkdir(parents=True, exist_ok=True)
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _printable(text: str) -> str:
    """The text without the control characters that XML 1.0 can't contain."""
    return re.sub("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "", text)
