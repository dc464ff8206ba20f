# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gates on options: a role hands its module all that it takes, and says of it what the module says."""

from __future__ import annotations

import ast
import re
from typing import Any, Dict, Iterator

import yaml

from dev.gates import Copy

COLLECTION = "nearmetal.ec2."
RUNTIME = "meta/runtime.yml"
# What a role and its module must say alike of an option.
SAME = ("type", "elements", "choices")
ROW = re.compile(r"^\| `([a-z0-9_]+)` \| (.*?) \|", re.MULTILINE)

Options = Dict[str, Dict[str, Any]]


def roles_pass_options(copy: Copy) -> "list[str]":
    """A role passes every option of the module of its name, in a variable of the option's name if it has that."""
    problems = []
    for module, options in _modules_of_roles(copy):
        specs = _specs(copy, module)
        passed = _passed(copy, module)
        tasks = f"roles/{module}/tasks"
        problems += [f"{tasks}: {module} takes {name}, and nothing is passed" for name in options if name not in passed]
        problems += [f"{tasks}: {name} is passed, and {module} takes none" for name in passed if name not in options]
        for name, value in passed.items():
            variable = f"{module}_{name}"
            if variable in specs and not re.search(rf"\b{variable}\b", value):
                problems.append(f"{tasks}: {name} is passed without {variable}")
    return problems


def role_variables_arrive(copy: Copy) -> "list[str]":
    """Every variable in a role's argument specs is used by its tasks, and means what the module's option means."""
    problems = []
    documented = dict(_modules_of_roles(copy))
    for role in _roles(copy):
        used = "\n".join(copy.text(name) for name in copy.having(".yml", below=f"roles/{role}/tasks/"))
        for variable, spec in _specs(copy, role).items():
            where = f"roles/{role}/meta/argument_specs.yml: {variable}"
            if not re.search(rf"\b{variable}\b", used):
                problems.append(f"{where} is used by no task")
            option = documented.get(role, {}).get(variable[len(role) + 1 :])
            problems += [
                f"{where} has the {key} {spec.get(key)!r}, the module's option {option.get(key)!r}"
                for key in SAME
                if option is not None and spec.get(key) != option.get(key)
            ]
    return problems


def readmes_list_variables(copy: Copy) -> "list[str]":
    """The table in a role's README has exactly the variables of its argument specs, with their defaults."""
    problems = []
    for role in _roles(copy):
        name = f"roles/{role}/README.md"
        if name not in copy.names:
            continue
        rows = dict(ROW.findall(copy.text(name)))
        rows = {variable: default for variable, default in rows.items() if variable.startswith(f"{role}_")}
        specs = _specs(copy, role)
        problems += [f"{name}: no row for {variable}" for variable in specs if variable not in rows]
        problems += [f"{name}: {variable} is no variable of the role" for variable in rows if variable not in specs]
        problems += [
            f"{name}: {variable} has the default {specs[variable]['default']!r}, not {shown}"
            for variable, shown in rows.items()
            if "default" in specs.get(variable, {}) and not _says(shown, specs[variable]["default"])
        ]
    return problems


def action_groups_are_whole(copy: Copy) -> "list[str]":
    """Groups in meta/runtime.yml hold the modules whose documentation says so; one per concern is in tuning."""
    if RUNTIME not in copy.names:
        return []
    groups = yaml.safe_load(copy.text(RUNTIME)).get("action_groups") or {}
    said: "dict[str, set[str]]" = {group: set() for group in groups}
    for module in _modules(copy):
        for attributes in _documents(copy, module, "attributes"):
            for group in (attributes.get("action_group") or {}).get("membership") or ():
                said.setdefault(group[len(COLLECTION) :], set()).add(module)
    problems = [
        f"{RUNTIME}: {group} {'lacks' if module in said[group] else 'has'} {module}, against its documentation"
        for group in said
        for module in sorted(said[group] ^ set(groups.get(group) or ()))
    ]
    concerns = {module for module in _modules(copy) if "import CONCERN\n" in copy.text(f"plugins/modules/{module}.py")}
    problems += [
        f"plugins/modules/{module}.py: tunes or checks a concern, and isn't in the group tuning"
        for module in sorted(concerns - said.get("tuning", set()))
    ]
    return problems


def _says(shown: str, default: Any) -> bool:
    """Whether a cell of a table shows this default."""
    if not re.fullmatch(r"`[^`]*`", shown):
        return False
    try:
        read = yaml.safe_load(shown[1:-1])
    except yaml.YAMLError:
        return False
    return type(read) is type(default) and bool(read == default)


def _modules(copy: Copy) -> "list[str]":
    return [name.split("/")[-1][: -len(".py")] for name in copy.having(".py", below="plugins/modules/")]


def _roles(copy: Copy) -> "list[str]":
    return sorted({name.split("/")[1] for name in copy.having("/meta/argument_specs.yml", below="roles/")})


def _modules_of_roles(copy: Copy) -> "Iterator[tuple[str, Options]]":
    """Each module that a role has the name of, with its documented options."""
    for module in sorted(set(_modules(copy)) & set(_roles(copy))):
        options: "dict[str, dict[str, Any]]" = {}
        for part in _documents(copy, module, "options"):
            options.update(part)
        yield module, options


def _documents(copy: Copy, module: str, key: str) -> "list[dict[str, Any]]":
    """What a module's documentation and its fragments say under a key."""
    own = yaml.safe_load(_text(copy, f"plugins/modules/{module}.py", "DOCUMENTATION")) or {}
    parts = [own]
    for fragment in own.get("extends_documentation_fragment") or ():
        name, _dot, attribute = fragment[len(COLLECTION) :].partition(".")
        path = f"plugins/doc_fragments/{name}.py"
        parts.append(yaml.safe_load(_text(copy, path, attribute.upper() or "DOCUMENTATION")) or {})
    return [part[key] for part in parts if part.get(key)]


def _text(copy: Copy, path: str, name: str) -> str:
    """The text that a file gives a name, on its own level or in a class."""
    for node in ast.walk(copy.tree(path)):
        if isinstance(node, ast.Assign) and any(isinstance(to, ast.Name) and to.id == name for to in node.targets):
            return str(ast.literal_eval(node.value))
    return ""


def _specs(copy: Copy, role: str) -> Options:
    found = yaml.safe_load(copy.text(f"roles/{role}/meta/argument_specs.yml")) or {}
    return (found.get("argument_specs", {}).get("main") or {}).get("options") or {}


def _passed(copy: Copy, role: str) -> "dict[str, str]":
    """Option → what the role passes, of its tasks that run the module of its name."""
    passed: "dict[str, str]" = {}
    for name in copy.having(".yml", below=f"roles/{role}/tasks/"):
        for task in yaml.safe_load(copy.text(name)) or ():
            passed.update({option: str(value) for option, value in (task.get(COLLECTION + role) or {}).items()})
    return passed
