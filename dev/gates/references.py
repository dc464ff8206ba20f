# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate on sources: what a finding names as its reference can be looked up."""

from __future__ import annotations

import ast
import json
import re
from typing import Iterator

from dev.gates import Copy

SOURCES = "plugins/plugin_utils/_forms/sources.json"
FIELD = "reference"
RETIRED = "dev/tables/retired.toml"  # types of instances, which the plugins have as packed data
DAY = re.compile(r"(20\d\d-\d\d-\d\d)?")
PAGE = re.compile(r"(docs/[\w/]+\.md)(?:#([\w-]+))?")


def references_lead_somewhere(copy: Copy) -> "list[str]":
    """Each reference names sources that sources.json has an address of, or pages of docs/, joined by "; "."""
    if SOURCES not in copy.names:
        return []
    known = json.loads(copy.text(SOURCES))
    problems = [f"{SOURCES}: {name}: {problem}" for name, entry in known.items() for problem in _entry(copy, entry)]
    used = set()
    for place, reference in _references(copy):
        for name in reference.split("; "):
            used.add(name)
            problem = "" if name in known else _page(copy, name)
            problems += [f"{place}: {name!r} {problem}"] if problem else []
    return problems + [f"{SOURCES}: {name}: no reference names it" for name in known if name not in used]


def _entry(copy: Copy, entry: "dict[str, str]") -> "Iterator[str]":
    if set(entry) != {"url", "title", "checked"} or not entry["title"]:
        yield "needs url, title and checked"
    elif not DAY.fullmatch(entry["checked"]):
        yield f"{entry['checked']} is no day such as 2026-11-25"
    elif entry["url"].startswith(("https://", "http://")):
        if not entry["checked"]:
            yield "needs the day on which somebody read it"
    elif _page(copy, entry["url"]):
        yield f"{entry['url']} is neither an address nor a page of docs/"


def _page(copy: Copy, name: str) -> str:
    """What is wrong with a reference that isn't in the table; empty if it is a page, or a heading, that exists."""
    page = PAGE.fullmatch(name)
    if not page or page[1] not in copy.names:
        return f"is not in {SOURCES}"
    return "" if not page[2] or page[2] in anchors(copy.text(page[1])) else "is no heading of that page"


def anchors(text: str) -> "set[str]":
    """The names by which links reach the headings of a page, as GitHub makes them."""
    return {
        re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-")
        for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    }


def _references(copy: Copy) -> "Iterator[tuple[str, str]]":
    """Where a reference is written, and the reference.

    That is every text that is given to a field or parameter of this name, by name, by position, or through a constant.
    """
    if RETIRED in copy.names:
        yield from ((RETIRED, text) for text in re.findall(rf'^{FIELD} = "(.+)"$', copy.text(RETIRED), re.MULTILINE))
    trees = {name: copy.tree(name) for name in copy.having(".py", below="plugins/")}
    places: "dict[str, set[int]]" = {}
    constants: "dict[str, set[str]]" = {}
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                _note(places, node.name, list(_fields(node)))
            elif isinstance(node, ast.FunctionDef):
                _note(places, node.name, [argument.arg for argument in node.args.args if argument.arg != "self"])
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
                text = node.value.value
                for constant in (target.id for target in node.targets if isinstance(target, ast.Name)):
                    if isinstance(text, str):
                        constants.setdefault(constant, set()).add(text)
    for name, tree in trees.items():
        for node in ast.walk(tree):
            for value in _given(node, places):
                for text in _texts(value, constants):
                    yield f"{name}:{value.lineno}", text


def _fields(node: ast.ClassDef) -> "Iterator[str]":
    for part in node.body:
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            yield part.target.id


def _note(places: "dict[str, set[int]]", name: str, fields: "list[str]") -> None:
    if FIELD in fields:
        places.setdefault(name, set()).add(fields.index(FIELD))


def _given(node: ast.AST, places: "dict[str, set[int]]") -> "Iterator[ast.expr]":
    """The expressions of which this node makes a reference."""
    if isinstance(node, ast.Call):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        yield from (word.value for word in node.keywords if word.arg == FIELD)
        yield from (node.args[place] for place in places.get(called, ()) if place < len(node.args))
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id.lower() == FIELD:
                yield node.value
            elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                yield from (
                    value
                    for name, value in zip(target.elts, node.value.elts)
                    if isinstance(name, ast.Name) and name.id.lower() == FIELD
                )
    elif isinstance(node, ast.FunctionDef) and node.args.defaults:
        with_default = node.args.args[-len(node.args.defaults) :]
        yield from (value for name, value in zip(with_default, node.args.defaults) if name.arg == FIELD)


def _texts(value: ast.expr, constants: "dict[str, set[str]]") -> "Iterator[str]":
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield from ([value.value] if value.value else [])
    elif isinstance(value, ast.Name) and value.id.isupper():
        yield from constants.get(value.id, ())
    elif isinstance(value, ast.IfExp):
        yield from _texts(value.body, constants)
        yield from _texts(value.orelse, constants)
