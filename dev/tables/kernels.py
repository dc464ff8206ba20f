# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ran on which kernel, from the results of scenarios in build/. Run it to write docs/kernels.md.

The scenarios kernels, older_kernel, newest_kernel and arm64 leave the result of `tune` in build/kernels/, a file
per host. A host without a file keeps its present column.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Dict, List

from dev import ROOT

RESULTS = ROOT / "build" / "kernels"
PAGE = ROOT / "docs" / "kernels.md"
BEGIN, END = "<!-- from results: begin -->", "<!-- from results: end -->"
Column = Dict[str, str]  # row → cell
HEAD = "asked for"


def column(result: Dict[str, Any]) -> Column:
    """Knob → the statuses that the host reported for it, all places of a knob together."""
    words_of: Dict[str, List[str]] = {}
    for finding in result["findings"]:
        if finding["status"] == "advice" or finding["concern"] == "unit":
            continue
        word = finding["status"].replace("_", " ")
        words = words_of.setdefault(f"{finding['concern']}.{finding['knob']}", [])
        if word not in words:
            words.append(word)
    return {row: ", ".join(words) for row, words in words_of.items()}


def title(result: Dict[str, Any]) -> str:
    """`6.1.0-43 x86_64`: the release as `uname -r` has it, without the flavour."""
    platform = result["platform"]
    return f"{platform['kernel'].split('-cloud')[0]} {platform['architecture']}"


def table(columns: Dict[str, Column]) -> str:
    """A Markdown table of all rows, in the order in which the first column has them."""
    rows = list(dict.fromkeys(row for words in columns.values() for row in words))
    lines = [f"| {HEAD} | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    lines += [f"| `{row}` | {' | '.join(words.get(row, '–') for words in columns.values())} |" for row in rows]
    return "\n".join(lines)


def columns_of(page: str) -> Dict[str, Column]:
    """The columns that the page has."""
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.partition(BEGIN)[2].partition(END)[0].splitlines()
        if line.startswith("|") and not line.startswith("|---")
    ]
    if not lines:
        return {}
    names = lines[0][1:]
    return {
        name: {line[0].strip("`"): line[place] for line in lines[1:] if line[place] != "–"}
        for place, name in enumerate(names, 1)
    }


def version(name: str) -> List[int]:
    """The sort key of a column: 5.10 before 6.1, arm64 after x86_64."""
    release, _space, architecture = name.partition(" ")
    numbers = [int(part) for part in release.replace("-", ".").replace("+", ".").split(".") if part.isdigit()]
    return [int(architecture != "x86_64"), *numbers]


def main() -> int:
    """Write the page again; 1 when there is no result to write."""
    results = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob("*.json"))]
    if not results:
        print(f"no result in {RESULTS.relative_to(ROOT)}: run molecule test --scenario-name kernels", file=sys.stderr)
        return 1
    page = PAGE.read_text(encoding="utf-8")
    columns = {**columns_of(page), **{title(result): column(result) for result in results}}
    ordered = {name: columns[name] for name in sorted(columns, key=version)}
    before, after = page.partition(BEGIN)[0], page.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n{table(ordered)}\n{END}{after}", encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)}: {', '.join(ordered)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
