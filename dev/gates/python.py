# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gates on Python files."""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from typing import Iterator

from graphlib import CycleError, TopologicalSorter

from dev.gates import Copy
from dev.gates.rooms import UTILS
from dev.generate.files import GENERATED, RETURNED

CONTROLLER = "plugins/plugin_utils/"
DOTTED = "ansible_collections.nearmetal.ec2.plugins.module_utils."
LIMIT_FILE, LIMIT_MODULE, LIMIT_MAIN = 400, 300, 40

# Comments that switch a checker off.
SUPPRESSION = re.compile(
    r"noqa|type:\s*ignore|pragma:\s*no|pylint:|nosec|mypy:|ruff:|fmt:\s*(off|skip)|pyright:|isort:\s*skip"
)
# Names by which a test skips itself.
LEFT_OUT = {
    "skip",
    "skipif",
    "skipIf",
    "skipUnless",
    "skipTest",
    "SkipTest",
    "xfail",
    "expectedFailure",
    "importorskip",
}
LEFT_OUT |= {"deselect", "collect_ignore", "collect_ignore_glob"}
# The folders of module_utils that each folder may import: parsers know no facts, facts no concerns, concerns no engine,
# and only the edges know Ansible.
_PLAIN = {"_error", "_loaded", "_measured", "_mistakes", "_number", "_parameters", "_plan", "_version", "_words"}
_PURE = {*_PLAIN, "_parse", "_facts", "_planning", "_concerns", "_programs", "_workloads"}
_WRITING = {*_PURE, "_host", "_levers", "_memory", "_requests", "_engine"}
_HOST = {*_WRITING, "_tasks"}
LAYERS = {
    "_parse": {"_parse", "_error", "_number"},
    "_facts": {"_facts", "_parse", "_programs", "_error", "_number", "_parameters", "_plan"},
    "_planning": {*_PLAIN, "_planning", "_facts"},
    "_concerns": {*_PLAIN, "_concerns", "_programs", "_planning", "_facts"},
    "_programs": {"_programs"},
    "_workloads": {*_PLAIN, "_workloads", "_planning"},
    "_host": {"_host", "_facts", "_error"},
    "_levers": {*_PLAIN, "_levers", "_host", "_facts", "_parse"},
    "_memory": {*_PLAIN, "_memory", "_levers", "_host", "_planning", "_facts", "_parse"},
    "_requests": {*_PURE, "_host", "_memory", "_requests"},
    "_engine": _WRITING,
    "_agent": {*_WRITING, "_agent"},
    "_tasks": {*_HOST, "_agent"},
    "_prove/statistics": {"_prove/statistics", "_parse", "_error", "_words"},
    "_benchmark/tools": {"_benchmark/tools", "_prove/statistics", "_planning", "_parse", "_error", "_number", "_words"},
    "_benchmark/host": {*_HOST, "_benchmark/host", "_benchmark/tools", "_prove/statistics"},
    "_prove/host": {*_HOST, "_profile", "_prove/host", "_prove/statistics", "_benchmark/host", "_benchmark/tools"},
    "_profile": {*_HOST, "_profile", "_benchmark/host", "_benchmark/tools"},
    "_rollout": {*_HOST, "_prove/host", "_rollout"},
    "_ansible": {*_HOST, "_ansible"},
    "_cloud": {"_cloud", "_planning", "_error", "_plan", "_words"},
}
# The same for the folders of plugin_utils. Its files beside them are for every room, and import none.
_OF_EVERY_ROOM = {"_clean", "_columns", "_files", "_page", "_together"}
CONTROLLER_LAYERS = {
    "_ansible": {*_OF_EVERY_ROOM, "_ansible"},
    "_benchmark": {*_OF_EVERY_ROOM, "_benchmark"},
    "_profile": {*_OF_EVERY_ROOM, "_profile"},
    "_prove": {*_OF_EVERY_ROOM, "_profile", "_prove"},
    "_rollout": {*_OF_EVERY_ROOM, "_rollout"},
    "_report": {*_OF_EVERY_ROOM, "_ansible", "_benchmark", "_profile", "_prove", "_report"},
    "_forms": {*_OF_EVERY_ROOM, "_benchmark", "_prove", "_report", "_forms"},
}
# Folders of Python files that may have more files than others, and why.
ONE_FILE_EACH = {
    "plugins/action": "Ansible finds an action by the name of its file, in this folder alone",
    "plugins/filter": "Ansible finds a filter by the name of its file, with its documentation beside it",
    "plugins/modules": "Ansible finds a module by the name of its file, and names it after its folder",
    "plugins/module_utils/_facts": "a file for each domain",
    "plugins/module_utils/_parse": "a file for each format",
    "plugins/module_utils/_programs": "a file for each program",
    "tests/unit/parse": "a file for each format",
}
MOST_FILES = 16
# How code calls it that nothing may be changed.
CHECK_MODE = {"check", "check_mode"}


def no_suppressions(copy: Copy) -> "list[str]":
    """No comment switches a checker off."""
    problems = []
    for name in copy.having(".py", ".pyi"):
        tokens = tokenize.generate_tokens(io.StringIO(copy.text(name)).readline)
        problems += [
            f"{name}:{token.start[0]}: {token.string}"
            for token in tokens
            if token.type == tokenize.COMMENT and SUPPRESSION.search(token.string)
        ]
    for name in copy.having(".yml", ".yaml", ".sh", ".toml", ".cfg"):
        for number, line in enumerate(copy.text(name).splitlines(), 1):
            if re.search(r"#.*(noqa|yamllint disable|shellcheck disable|ansible-lint disable)", line):
                problems.append(f"{name}:{number}: {line.strip()}")
    return problems


def no_test_left_out(copy: Copy) -> "list[str]":
    """No test skips itself, expects to fail, or is left out of the collection; none waits by sleeping."""
    problems = []
    for name in copy.having(".py", below="tests/") + copy.having(".py", below="molecule/"):
        for node in ast.walk(copy.tree(name)):
            word = _word(node)
            if word in LEFT_OUT:
                problems.append(f"{name}:{getattr(node, 'lineno', 1)}: {word}")
            if isinstance(node, ast.Call) and _word(node.func) == "sleep":
                problems.append(f"{name}:{node.lineno}: sleep; wait for what must happen instead")
    return problems


def _word(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def budgets(copy: Copy) -> "list[str]":
    """Files, modules, main() and tasks/main.yml keep to their sizes; what is generated doesn't count."""
    problems = []
    for name in copy.having(".py"):
        text = copy.text(name)
        is_module = name.startswith("plugins/modules/")
        limit = LIMIT_MODULE if is_module else LIMIT_FILE
        lines = RETURNED.sub("", text).count("\n") if is_module else text.count("\n")
        if lines > limit:
            problems.append(f"{name}: {lines} lines, at most {limit}")
        if is_module:
            problems += [
                f"{name}:{node.lineno}: main() has {_length(node)} lines, at most {LIMIT_MAIN}"
                for node in copy.tree(name).body
                if isinstance(node, ast.FunctionDef) and node.name == "main" and _length(node) > LIMIT_MAIN
            ]
    for name in copy.having("/tasks/main.yml", below="roles/"):
        lines = copy.text(name).count("\n")
        if lines > LIMIT_MAIN and GENERATED not in copy.text(name):
            problems.append(f"{name}: {lines} lines, at most {LIMIT_MAIN}")
    return problems


def crowded_folders(copy: Copy) -> "list[str]":
    """No folder of Python files has more than 16 files, except those of ONE_FILE_EACH."""
    counts = Counter(name.rpartition("/")[0] for name in copy.names)
    python = {name.rpartition("/")[0] for name in copy.having(".py")}
    return [
        f"{folder}: {counts[folder]} files, at most {MOST_FILES}"
        for folder in sorted(python - ONE_FILE_EACH.keys())
        if counts[folder] > MOST_FILES
    ]


def _length(node: ast.FunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def layers(copy: Copy) -> "list[str]":
    """No layer imports from one above it, each folder is a layer, and plugins but modules import by relative paths."""
    problems = [*_climbing(copy, UTILS, LAYERS), *_climbing(copy, CONTROLLER, CONTROLLER_LAYERS), *_circle(copy)]
    for name in copy.having(".py", below=UTILS):
        modules = ((line, module) for line, module in _imports(copy.tree(name), name) if ".ec2.plugins." in module)
        problems += [f"{name}:{line}: imports {module}" for line, module in modules if ".module_utils" not in module]
    # Mitogen runs a module as a file that has no package.
    for name in copy.having(".py", below="plugins/"):
        for node in ast.walk(copy.tree(name)):
            if isinstance(node, ast.ImportFrom) and node.module != "__future__":
                absolute = (node.module or "").startswith("ansible_collections.nearmetal")
                if node.level if name.startswith("plugins/modules/") else absolute:
                    problems.append(f"{name}:{node.lineno}: imports {node.module} by the wrong kind of path")
    return problems


def _climbing(copy: Copy, top: str, layers: "dict[str, set[str]]") -> "Iterator[str]":
    """Each import of a folder below `top` that its row doesn't allow, and each folder without a row."""
    dotted = f".{top.replace('/', '.')}"
    for name in copy.having(".py", below=top):
        if name.endswith("/__init__.py") and not copy.text(name):
            continue
        layer = _layer(name[len(top) :], layers)
        inside = "/" in name[len(top) :] and name.count("/") > top.count("/") + layer.count("/")
        if inside and layer not in layers:
            yield f"{top}{layer}: dev/gates/python.py doesn't say what it may import"
        for line, module in _imports(copy.tree(name), name):
            target = _layer(module.partition(dotted)[2].replace(".", "/"), layers)
            if inside and target and target not in layers.get(layer, ()):
                yield f"{name}:{line}: {layer} imports {target}"


def _layer(path: str, layers: "dict[str, set[str]]") -> str:
    """The folder with a row in which a file or module below the top is; without one its first folder."""
    folder, _slash, rest = path.partition("/")
    inner = f"{folder}/{rest.partition('/')[0]}"
    return inner if inner in layers else folder


def _circle(copy: Copy) -> "Iterator[str]":
    """A circle of files that import each other, late imports and those for type checkers included."""
    names = {_dotted(name): name for name in copy.having(".py", below="plugins/")}
    graph = {}
    for name in names.values():
        modules = [module for _line, module in _imports(copy.tree(name), name)]
        graph[name] = {names.get(module) or names.get(module.rpartition(".")[0], "") for module in modules} - {"", name}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        yield f"these files import each other: {', '.join(reversed(error.args[1]))}"


def _dotted(name: str) -> str:
    return f"ansible_collections.nearmetal.ec2.{name[: -len('.py')].replace('/', '.')}".removesuffix(".__init__")


def planning_is_check_mode(copy: Copy) -> "list[str]":
    """Check mode chooses the function that plans in place of the one that carries out; nothing else branches on it."""
    problems = []
    for name in copy.having(".py", below="plugins/"):
        for node in ast.walk(copy.tree(name)):
            if isinstance(node, ast.arg) and node.arg in CHECK_MODE:
                problems.append(f"{name}:{node.lineno}: a function takes {node.arg}")
            test = getattr(node, "test", None)
            if isinstance(test, ast.expr) and _asks_for_check_mode(test) and not _chooses(node):
                problems.append(f"{name}:{test.lineno}: a branch on check mode")
    return problems


def _asks_for_check_mode(test: ast.AST) -> bool:
    words = {_word(node) for node in ast.walk(test)}
    words |= {str(node.value) for node in ast.walk(test) if isinstance(node, ast.Constant)}
    return not words.isdisjoint(CHECK_MODE)


def _chooses(node: ast.AST) -> bool:
    """Whether an expression chooses one of two functions, or of two words for them."""
    plain = (ast.Name, ast.Attribute, ast.Constant)
    return isinstance(node, ast.IfExp) and isinstance(node.body, plain) and isinstance(node.orelse, plain)


def only_the_standard_library(copy: Copy) -> "list[str]":
    """Code for managed hosts imports only the standard library and this collection. boto3 runs on the controller."""
    problems = []
    known = sys.stdlib_module_names | {"ansible", "ansible_collections"}
    for name in copy.having(".py", below=UTILS):
        extra = {"boto3", "botocore"} if name.startswith(f"{UTILS}_cloud/") else set()
        for line, module in _imports(copy.tree(name), name):
            if module.split(".")[0] not in known | extra:
                problems.append(f"{name}:{line}: imports {module}")
    return problems


def _imports(tree: ast.Module, name: str) -> "Iterator[tuple[int, str]]":
    """The modules that the file `name` imports; `from x import y` counts as x.y, so that packages show their layer."""
    folders = ["ansible_collections", "nearmetal", "ec2", *name.split("/")[:-1]]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and node.module != "__future__":
            package = folders[: len(folders) + 1 - node.level] if node.level else []
            start = ".".join([*package, *filter(None, [node.module])])
            for alias in node.names:
                yield node.lineno, f"{start}.{alias.name}"
