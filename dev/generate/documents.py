# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documentation of the modules, with the fragments that it extends."""

from __future__ import annotations

import ast
from typing import Any, Dict

import yaml

from dev.gates import Copy

COLLECTION = "nearmetal.ec2."

Options = Dict[str, Dict[str, Any]]


def modules(copy: Copy) -> "list[str]":
    """The names of all modules."""
    return [name.split("/")[-1][: -len(".py")] for name in copy.having(".py", below="plugins/modules/")]


def documentation(copy: Copy, module: str) -> "dict[str, Any]":
    """A module's DOCUMENTATION; its own options come before those of its fragments, and override them."""
    document = yaml.safe_load(_text(copy, f"plugins/modules/{module}.py", "DOCUMENTATION")) or {}
    for fragment in fragments(document):
        name, _dot, part = fragment.partition(".")
        shared = yaml.safe_load(_text(copy, f"plugins/doc_fragments/{name}.py", part.upper() or "DOCUMENTATION")) or {}
        for key in ("options", "attributes"):
            module_values = document.get(key) or {}
            document[key] = {**module_values, **(shared.get(key) or {}), **module_values}  # keep the module's order
    return dict(document)


def groups(copy: Copy) -> "dict[str, list[str]]":
    """Each action group with the modules whose documentation says that they are in it."""
    members: "dict[str, list[str]]" = {}
    for module in modules(copy):
        attributes = documentation(copy, module).get("attributes") or {}
        for group in (attributes.get("action_group") or {}).get("membership") or ():
            members.setdefault(group[len(COLLECTION) :], []).append(module)
    return {group: sorted(members[group]) for group in sorted(members)}


def fragments(document: "dict[str, Any]") -> "list[str]":
    """The fragments of this collection that a document extends, without the collection's name."""
    names = document.get("extends_documentation_fragment") or ()
    return [name[len(COLLECTION) :] for name in names if name.startswith(COLLECTION)]


def paragraphs(described: "dict[str, Any]") -> "list[str]":
    """The description of an option, which may be one text or a list of texts."""
    description = described.get("description") or []
    return [" ".join(text.split()) for text in ([description] if isinstance(description, str) else description)]


def _text(copy: Copy, path: str, name: str) -> str:
    """The text that a file assigns to a name, at module level or in a class; empty without one."""
    for node in ast.walk(copy.tree(path)):
        if isinstance(node, ast.Assign) and any(isinstance(to, ast.Name) and to.id == name for to in node.targets):
            return str(ast.literal_eval(node.value))
    return ""
