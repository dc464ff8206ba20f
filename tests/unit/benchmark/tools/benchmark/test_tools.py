# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page names the package of each tool as it is declared, and a tool is found by each of its names."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.host import refusals
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.tools.benchmark import Tool
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.tools.registry import BENCHMARKS

ROOT = Path(__file__).parents[5]
FAMILIES = ("debian", "fedora", "amzn", "suse")  # in the order of the page's columns
TOOLS = {tool.program: tool for benchmark in BENCHMARKS.values() for tool in benchmark.tools if tool.packages}


def _rows() -> "dict[str, list[str]]":
    page = (ROOT / "docs/benchmarks.md").read_text("utf-8")
    table = page[page.index("| tool | Debian") :].split("\n\n")[0].split("\n")[2:]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table]
    return {program: packages for programs, *packages in cells for program in programs.split(", ")}


def test_the_page_has_each_tool() -> None:
    assert set(_rows()) == set(TOOLS)


@pytest.mark.parametrize("program", TOOLS)
def test_the_page_has_each_package_as_it_is(program: str) -> None:
    cells = dict(zip(FAMILIES, _rows()[program]))
    for family, cell in cells.items():
        package = TOOLS[program].packages.get(family)
        assert cell == "none" if package is None else package in cell.replace(",", " ").replace(";", " ").split()


@pytest.mark.parametrize(
    ("tool", "name"),
    [(tool, name) for tool in TOOLS.values() for name in (tool.program, *tool.also)],
    ids=lambda value: value if isinstance(value, str) else value.program,
)
def test_a_tool_is_found_by_each_of_its_names(tool: Tool, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "program_path", lambda program: program == name)
    assert refusals.program_of(tool) == name
