# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Change one operator, condition, number or loop at a time in code that writes. `python -m dev.running.mutants [WORD]`

cosmic-ray makes the changes. tests/mutants.toml names the files, the tests that must notice a change of each, and the
changes that no test can notice, with the reason. A WORD takes only the files whose name contains it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import tomllib

from dev import ROOT
from dev.gates.rooms import UTILS
from dev.mutate import PYTEST, run_tests, surroundings, working_copy
from dev.running import junit

FILE = ROOT / "tests" / "mutants.toml"
SECONDS = 300  # a change that makes the tests run longer is noticed
# Of an operator only the neighbor that is easily mistaken for it, and no type of an annotation.
PASSED_OVER = (
    "core/ReplaceBinaryOperator_(?!Add_Sub|Sub_Add|Mul_Div|Div_Mul)",
    "core/ReplaceComparisonOperator_(?!Eq_NotEq|NotEq_Eq|Lt_LtE|LtE_Lt|Gt_GtE|GtE_Gt|Lt_GtE|Gt_LtE|Is_IsNot|IsNot_Is)",
    "core/ReplaceUnaryOperator_(?!Delete_Not)",
    "core/(RemoveDecorator|Variable)",
)


def table() -> "dict[str, Any]":
    """Each file, with its tests and the answers to changes that they don't notice."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def survivors(name: str, tests: "list[str]", copy: Path) -> "tuple[Counter[str], set[tuple[str, str]]]":
    """How many changes of a file were noticed or not, and the others as lines before and after, in a new copy."""
    working_copy(copy)
    before = run_tests(copy, tests)  # they leave bytecode, too, which the later runs only read
    if before.returncode:
        raise SystemExit(f"the tests fail without any change:\n{before.stdout[-4000:]}")
    settings: "dict[str, dict[str, Any]]" = {
        "cosmic-ray": {"module-path": name, "timeout": float(SECONDS), "test-command": " ".join([*PYTEST, *tests])},
        "cosmic-ray.distributor": {"name": "local"},
        "cosmic-ray.filters.operators-filter": {"exclude-operators": PASSED_OVER},
    }
    text = "".join(
        f"[{section}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())
        for section, values in settings.items()
    )
    (copy / "settings.toml").write_text(text, encoding="utf-8")
    for command in (
        ["cosmic-ray", "init", "settings.toml", "changes.sqlite"],
        ["cr-filter-operators", "changes.sqlite", "settings.toml"],
        ["cosmic-ray", "exec", "settings.toml", "changes.sqlite"],
    ):
        _call(copy, command)
    results = [json.loads(line)[1] for line in _call(copy, ["cosmic-ray", "dump", "changes.sqlite"]).splitlines()]
    made = [result for result in results if result["worker_outcome"] != "skipped"]
    unnoticed = {_lines(result["diff"]) for result in made if result["test_outcome"] == "survived"}
    return Counter(str(result["test_outcome"]) for result in made), unnoticed


def _call(copy: Path, command: "list[str]") -> str:
    program = str(Path(sys.executable).with_name(command[0]))
    environment = surroundings(copy)
    done = subprocess.run(
        [program, *command[1:]], cwd=copy, env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


def _lines(diff: str) -> "tuple[str, str]":
    """The lines that a change takes away, and those that it puts there."""
    lines = [line for line in diff.splitlines() if line[:1] in ("-", "+") and line[:3] not in ("---", "+++")]
    removed, added = ("\n".join(line[1:].strip() for line in lines if line[0] == sign) for sign in "-+")
    return removed, added


def judge(row: str, entry: "dict[str, Any]", folder: Path) -> junit.Case:
    """Whether each change of a file is noticed, or has its reason in the table."""
    started = time.monotonic()
    counts, unnoticed = survivors(UTILS + row, entry["tests"], folder / row.replace("/", "."))
    answered = {(change["line"], change["changed"]) for change in entry.get("unnoticed", ())}
    problems = [
        f"no test notices\n      {line}\n    as\n      {changed}" for line, changed in sorted(unnoticed - answered)
    ]
    lines = [line for line, _changed in answered - unnoticed]
    problems += [f"a test notices now, so take it out of the table:\n      {line}" for line in lines]
    seconds = time.monotonic() - started
    noticed = counts.total() - counts["survived"]
    print(
        f"  {'✗' if problems else '✓'} {row}: {noticed} of {counts.total()} changes noticed, {seconds:.0f} s",
        flush=True,
    )
    print("".join(f"    {problem}\n" for problem in problems), end="", flush=True)
    return junit.Case("mutants", row, "failed" if problems else "passed", seconds, "\n".join(problems))


def main(arguments: "list[str]") -> int:
    """Print a line per file, and each change that is neither noticed nor answered; 1 if there is one."""
    parser = argparse.ArgumentParser(prog="python -m dev.running.mutants")
    parser.add_argument("--junit", type=Path)
    parser.add_argument("word", nargs="?", default="")
    options = parser.parse_args(arguments)
    rows = {row: entry for row, entry in table().items() if options.word in row}
    with tempfile.TemporaryDirectory(prefix="nm-mutants-") as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        cases = list(pool.map(lambda row: judge(row, rows[row], Path(folder)), rows))
    if options.junit:
        junit.write(options.junit, "mutants", cases)
    return int(any(case.outcome == "failed" for case in cases))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
