# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The values in the workloads' playbooks, each below its reason and its source."""

from __future__ import annotations

import ast
import textwrap
from typing import Any

from dev.gates import Copy
from dev.generate.text import WIDTH, as_yaml

FOLDER = "plugins/module_utils/_workloads/"
# Every playbook has the first concern before its own ones and the last two, which change nothing, after them.
LAYERS = ("base", "common")
FIRST = "clocksource"
CHECKS = ("kernel_check", "blkfront_check")


def names(copy: Copy) -> "list[str]":
    """The workloads that have a playbook."""
    return [
        name
        for name in (file[len(FOLDER) : -len(".py")] for file in copy.having(".py", below=FOLDER))
        if name not in LAYERS and f"playbooks/{name}.yml" in copy.names
    ]


def values(copy: Copy, name: str) -> str:
    """The lines of tune_workload_concerns in the playbook of this workload."""
    own = _own(copy, name)
    merged: "dict[str, dict[str, Any]]" = {}
    for layer in (*(_own(copy, layer) for layer in LAYERS), own):
        for concern, choices in layer.items():
            merged.setdefault(concern, {}).update(choices)
    between = [concern for concern in dict.fromkeys((*own, *merged)) if concern not in (FIRST, *CHECKS)]
    lines = []
    for concern in (FIRST, *between, *CHECKS):
        if concern == CHECKS[0]:
            lines.append(f"{' ' * 10}# These two only look.")
        lines.append(f"{' ' * 10}{concern}:{'' if merged[concern] else ' {}'}")
        for option, (value, reason, source) in merged[concern].items():
            lines += _commented(option, value, f"{reason[0].upper()}{reason[1:]} ({source}).")
    return "\n".join(lines) + "\n"


def _commented(option: str, value: Any, comment: str) -> "list[str]":
    """An option's value below its comment; a list of mappings has a line for each key."""
    indent = " " * 12
    lines = textwrap.wrap(
        comment,
        WIDTH,
        initial_indent=f"{indent}# ",
        subsequent_indent=f"{indent}# ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    if not (isinstance(value, list) and isinstance(value[0], dict)):
        return [*lines, f"{indent}{option}: {as_yaml(value)}"]
    lines.append(f"{indent}{option}:")
    for entry in value:
        keys = [f"{key}: {as_yaml(part)}" for key, part in entry.items()]
        lines += [f"{indent}  {mark} {key}" for mark, key in zip(["-", *" " * len(keys)], keys)]
    return lines


def _own(copy: Copy, name: str) -> "dict[str, dict[str, Any]]":
    """concern → option → value, reason and source, as a workload's file assigns them to OWN."""
    for node in copy.tree(f"{FOLDER}{name}.py").body:
        if isinstance(node, ast.AnnAssign) and node.value and ast.unparse(node.target) == "OWN":
            return dict(ast.literal_eval(ast.unparse(_Choices().visit(node.value))))
    return {}


class _Choices(ast.NodeTransformer):
    """Makes a tuple of each Choice(…), so that ast can evaluate what contains them."""

    def visit_Call(self, node: ast.Call) -> ast.Tuple:
        return ast.Tuple(node.args, ast.Load())
