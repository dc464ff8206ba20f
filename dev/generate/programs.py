# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the maintainers of programs ask of a host, as the rows of docs/programs.md."""

from __future__ import annotations

import ast
from collections import Counter
from typing import Any

from dev.gates import Copy

FOLDER = "plugins/module_utils/_programs/"
# The files of the folder that are no programs.
FORM, TABLE, OTHERS = "program", "without_wishes", ("__init__", "registry")


def programs(copy: Copy) -> "dict[str, Any]":
    """Name → program, each as its file declares it: in capitals."""
    names = [file[len(FOLDER) : -len(".py")] for file in copy.having(".py", below=FOLDER)]
    if FORM not in names:
        return {}
    form = _run(copy, FORM, {})
    found = dict(_run(copy, TABLE, form)["PROGRAMS"]) if TABLE in names else {}
    for file in names:
        if file not in (FORM, TABLE, *OTHERS):
            declared = _run(copy, file, form).items()
            found.update({name.lower(): value for name, value in declared if isinstance(value, form["Program"])})
    return dict(sorted(found.items()))


def versions(wish: Any) -> str:
    """The versions for which a wish holds, in words."""
    words = [word for word in (wish.since and f"from {wish.since}", wish.before and f"before {wish.before}") if word]
    return " ".join([*words, *([f"on {wish.architecture}"] if wish.architecture else [])]) or "all"


def glance(found: "dict[str, Any]") -> "tuple[list[str], dict[str, list[str]]]":
    """The settings that several programs ask for, and program → what it asks of each, and its other settings."""
    asked = Counter(knob for program in found.values() for knob in {wish.knob for wish in program.wishes})
    common = sorted((knob for knob, programs in asked.items() if programs > 2), key=lambda knob: (-asked[knob], knob))
    rows = {}
    for name, program in found.items():
        cells = ["; ".join(_asked(wish) for wish in program.wishes if wish.knob == knob) for knob in common]
        others = dict.fromkeys(f"`{wish.knob}`" for wish in program.wishes if wish.knob not in common)
        rows.update({name: [*cells, ", ".join(others)]} if program.wishes else {})
    return common, rows


def values(wish: Any) -> str:
    """The values with which a program is content."""
    return " or ".join(map(str, (wish.value, *wish.also)))


def _asked(wish: Any) -> str:
    return values(wish) + ("" if versions(wish) == "all" else f" ({versions(wish)})")


def own_checks(program: Any) -> "list[str]":
    """What the program looks at itself when it starts, which the finding `start` of service_check looks at too."""
    limits = [f"{check.what} ({check.least if check.least < 1 << 62 else 'unlimited'})" for check in program.checks]
    return [*dict.fromkeys(f"`{wish.knob}`" for wish in program.wishes if wish.checked), *limits]


def judges(copy: Copy) -> "dict[str, str]":
    """Program → what it says itself, of those that a test starts before and after a host is tuned for them."""
    said = {}
    for file in copy.having(".py", below="tests/programs/test_"):
        for node in ast.walk(copy.tree(file)):
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "SERVERS_BY_NAME":
                assert isinstance(node.value, ast.Dict)
                for key, server in zip(node.value.keys, node.value.values):
                    gone, explained = _warnings(server)
                    words = [f"{gone} of the host, gone" if gone else "", f"{explained} of limits" if explained else ""]
                    said[ast.literal_eval(key or ast.Constant(""))] = ", ".join(filter(None, words)) or "none"
    return said


def _warnings(server: ast.expr) -> "tuple[int, int]":
    """How many warnings about the host and about limits a server of a test gives."""
    assert isinstance(server, ast.Call)
    gone, explained = (len(part.elts) if isinstance(part, ast.Tuple) else 0 for part in (*server.args, None, None)[2:4])
    return gone, explained


def _run(copy: Copy, name: str, names: "dict[str, Any]") -> "dict[str, Any]":
    """The names that a file of the folder declares, which has those of `names` for what it imports of the form."""
    tree = copy.tree(f"{FOLDER}{name}.py")
    tree.body = [node for node in tree.body if not (isinstance(node, ast.ImportFrom) and node.level)]
    namespace = {"__name__": name, **names}
    exec(compile(tree, name, "exec"), namespace)
    return namespace
