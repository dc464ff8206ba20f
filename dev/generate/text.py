# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters of the templates, which write values and sentences as YAML and Markdown."""

from __future__ import annotations

import json
import re
import textwrap
from typing import Any

import yaml

from dev.generate.documents import COLLECTION
from dev.generate.roles import Variable

WIDTH = 120
# A sentence ends with a full stop before a capital letter or markup such as V(…), unlike net.core.somaxconn.
FIRST = re.compile(r"(.*?[.!?])(?= [A-Z0-9])")
MARKUP = re.compile(r"\b(O|V|C|E|RV|I|M|P)\(([^()]*(?:\([^()]*\))?[^()]*)\)")
TYPES = {"bool": "`true`, `false`", "int": "number", "float": "number", "dict": "mapping", "list": "list"}
TYPES |= dict.fromkeys(("raw", "str", "path"), "text")


def as_yaml(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, str):
        return value if _reads(f"[{value}]", value) else json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return f"[{', '.join(map(as_yaml, value))}]"
    return json.dumps(value)


def field(key: str, value: Any, indent: int) -> str:
    """A key with its value; a list that is too long for the line has a line per item."""
    line = f"{key}: {as_yaml(value)}"
    if not isinstance(value, list) or indent + len(line) <= WIDTH:
        return line
    return f"{key}:" + "".join(f"\n{' ' * indent}  - {as_yaml(item)}" for item in value)


def folded(text: str, indent: int) -> str:
    """A text that begins in this column, quoted where YAML needs that, with further lines below its beginning."""
    return _wrapped(text if _reads(f"- {text}", text) else json.dumps(text, ensure_ascii=False), indent)


def template(value: str, indent: int) -> str:
    """A Jinja expression as the value of a task's option, whose value begins in this column."""
    quoted = f'"{value}"'
    return quoted if len(quoted) + indent <= WIDTH else f">-\n      {_wrapped(value, 6)}"


def sentence(text: str) -> str:
    """The first sentence, without its full stop."""
    match = FIRST.match(text)
    return (match[1] if match else text).rstrip(".")


def markdown(text: str) -> str:
    """Ansible's markup as Markdown, escaped for a cell of a table."""
    return MARKUP.sub(lambda match: _marked(match[1], match[2]), text).replace("|", "\\|")


def values(spec: "dict[str, Any]") -> str:
    """The values that a variable accepts: its choices, or its type."""
    if "choices" in spec:
        choices = ", ".join(f"`{as_yaml(choice)}`" for choice in spec["choices"])
        return f"list of {choices}" if spec["type"] == "list" else choices
    if "options" in spec:
        parts = ", ".join(f"`{option}`" for option in spec["options"])
        return f"list of mappings: {parts}" if spec["type"] == "list" else f"mapping: {parts}"
    return "`true`, `false`, `last`" if spec["type"] == "raw" and spec.get("default") is True else TYPES[spec["type"]]


def default_shown(variable: Variable) -> str:
    """The default in a table, in words where it is no plain value."""
    return f"`{as_yaml(variable.spec['default'])}`" if "default" in variable.spec else variable.default_in_words


def _marked(kind: str, text: str) -> str:
    if kind == "I":
        return f"*{text}*"
    if kind in ("M", "P"):
        return f"`{text[len(COLLECTION) :].partition('#')[0]}`"
    if kind in ("O", "RV"):
        text = text.rpartition(":")[2].replace("=", ": ")
    return f"`{text}`"


def _reads(document: str, text: str) -> bool:
    """Whether YAML reads this list of one text as that text."""
    try:
        return bool(yaml.safe_load(document) == [text])
    except yaml.YAMLError:
        return False


def _wrapped(text: str, indent: int) -> str:
    lines = textwrap.wrap(text, WIDTH - indent, break_long_words=False, break_on_hyphens=False)
    return f"\n{' ' * indent}".join(lines)
