# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gates on YAML files: tasks that hide failures, roles that are not whole."""

from __future__ import annotations

import re
from typing import Any, Iterator

import yaml

from dev.gates import Copy

# A task with changed_when: false may only run a command from this list, and no shell.
READ_ONLY = {
    "cat",
    "cmp",
    "command -v",
    "findmnt",
    "getconf",
    "grep",
    "id",
    "journalctl",
    "ls",
    "lscpu",
    "lsirq",
    "nproc",
    "numactl --hardware",
    "readlink",
    "sha256sum",
    "stat",
    "systemctl is-active",
    "systemctl show",
    "test",
    "uname",
}
COMMANDS = ("ansible.builtin.command", "command")
ROLE_FILES = ("README.md", "defaults/main.yml", "meta/argument_specs.yml", "meta/main.yml", "tasks/main.yml")


def _documents(copy: Copy, name: str) -> "list[Any]":
    try:
        return list(yaml.compose_all(copy.text(name), Loader=yaml.SafeLoader))
    except yaml.YAMLError:
        return []  # yamllint names it


def _mappings(node: Any) -> "Iterator[yaml.MappingNode]":
    if isinstance(node, yaml.MappingNode):
        yield node
        for _key, value in node.value:
            yield from _mappings(value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _mappings(item)


def _tasks(copy: Copy) -> "Iterator[tuple[str, yaml.MappingNode, dict[str, yaml.Node]]]":
    for folder in ("roles/", "playbooks/", "molecule/", "lab/", "tests/", "docs/"):
        for name in copy.having(".yml", ".yaml", below=folder):
            for document in _documents(copy, name):
                for node in _mappings(document):
                    yield name, node, {str(key.value): value for key, value in node.value}


def no_hidden_failure(copy: Copy) -> "list[str]":
    """No task hides its failure, and no task that can change something reports that it changed nothing.

    A host that can't be reached is not hidden where a task of the file asks for such hosts.
    """
    problems = []
    for name, node, keys in _tasks(copy):
        where = f"{name}:{node.start_mark.line + 1}"
        problems += [f"{where}: ignore_errors"] if "ignore_errors" in keys else []
        unseen = "ignore_unreachable" in keys and " is unreachable" not in copy.text(name)
        problems += [f"{where}: ignore_unreachable"] if unseen else []
        if _says(keys.get("failed_when"), "false"):
            problems.append(f"{where}: failed_when: false")
        if _says(keys.get("changed_when"), "false") and not _reads(keys):
            problems.append(f"{where}: changed_when: false on a task that is not known to only read")
        problems += [f"{where}: || true" for value in keys.values() if re.search(r"\|\|\s*(true|:)", _plain(value))]
    return problems


def _says(node: "yaml.Node | None", word: str) -> bool:
    return isinstance(node, yaml.ScalarNode) and str(node.value).lower() in (word, "no", "0")


def _plain(node: Any) -> str:
    return str(node.value) if isinstance(node, yaml.ScalarNode) else ""


def _reads(keys: "dict[str, yaml.Node]") -> bool:
    if _plain(keys.get("ansible.builtin.raw")) == "true":
        return True
    command = next((keys[word] for word in COMMANDS if word in keys), None)
    if isinstance(command, yaml.MappingNode):
        asked = next((_plain(value) for key, value in command.value if key.value == "stdin"), "")
        if asked == "show stat":  # of HAProxy
            return True
    return command is not None and _first_words(command) & READ_ONLY != set()


def _first_words(command: Any) -> "set[str]":
    """`cat` and `cat x` of the command `cat x y`, whichever way the task writes it."""
    if isinstance(command, yaml.MappingNode):
        inner = {str(key.value): value for key, value in command.value}
        command = inner.get("argv", inner.get("cmd"))
    if isinstance(command, yaml.SequenceNode):
        words = [_plain(item) for item in command.value]
    else:
        words = _plain(command).split()
    return {words[0].rpartition("/")[2], " ".join([words[0].rpartition("/")[2], *words[1:2]])} if words else set()


def whole_roles(copy: Copy) -> "list[str]":
    """Every role has its README, defaults, argument specs, meta and tasks."""
    present = set(copy.names)
    return [
        f"roles/{role}/{name}: missing"
        for role in _roles(copy)
        for name in ROLE_FILES
        if f"roles/{role}/{name}" not in present
    ]


def _roles(copy: Copy) -> "list[str]":
    return sorted({name.split("/")[1] for name in copy.names if name.startswith("roles/") and name.count("/") > 1})
