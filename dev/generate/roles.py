# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A role, as its module's documentation and roles.yml describe it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dev.gates import Copy
from dev.generate.documents import COLLECTION, Options, documentation, fragments, modules, paragraphs

DIFFERENCES = Path(__file__).with_name("roles.yml")
OPTION = re.compile(r"\bO\(([a-z0-9_]+)([^():#]*)\)")
RETURNED = re.compile(r"\bRV\(([a-z0-9_]+[^():#]*)\)")
# The keys of an option in an argument spec, apart from its description and suboptions.
KEYS = ("type", "elements", "choices", "required", "default")


@dataclass(frozen=True)
class Variable:
    """A variable of a role."""

    name: str
    spec: "dict[str, Any]"
    paragraphs: "list[str]"
    default_in_words: str


@dataclass(frozen=True)
class Role:
    """A role as the templates need it. `tasks` is the file with the module's call; None if it is written by hand."""

    name: str
    module: str
    is_cloud: bool
    short_description: str
    description: "list[str]"
    task: str
    tasks: "str | None"
    variables: "list[Variable]"
    passed: "list[tuple[str, str]]"

    @property
    def defaults(self) -> "dict[str, Any]":
        """Variable → default, of those that have one."""
        return {variable.name: variable.spec["default"] for variable in self.variables if "default" in variable.spec}


def names(copy: Copy) -> "list[str]":
    """Every folder in roles/."""
    return sorted({name.split("/")[1] for name in copy.names if name.startswith("roles/") and name.count("/") > 1})


def read(copy: Copy, role: str) -> "Role | None":
    """The role of that name; None where no module is documented for it."""
    differences = yaml.safe_load(DIFFERENCES.read_text(encoding="utf-8"))
    role_differences = differences["roles"].get(role) or {}
    module = role_differences.get("module", role)
    if module not in modules(copy):
        return None
    document = documentation(copy, module)
    is_cloud = any(fragment.startswith("aws") for fragment in fragments(document))
    kind = differences["cloud" if is_cloud else "host"]
    options = _options(document["options"], kind["options"], role_differences.get("options") or {})
    return Role(
        name=role,
        module=module,
        is_cloud=is_cloud,
        short_description=role_differences.get("short_description", document["short_description"]),
        description=[
            text.format(role=role, module=module) for text in role_differences.get("description", kind["description"])
        ],
        task=role_differences.get("task", document["short_description"]),
        tasks=role_differences.get("tasks", "tasks/main.yml"),
        variables=[
            Variable(
                name=f"{role}_{name}",
                spec=_spec(role, module, option),
                paragraphs=[in_role(role, module, text) for text in paragraphs(option)],
                default_in_words=option.get("default_in_words", kind["without"]),
            )
            for name, option in options.items()
            if option.get("variable", True)
        ],
        passed=[
            (name, _passed(role, name, options[name]))
            for name in document["options"]
            if options[name]["passed"] is not None
        ],
    )


def _options(documented: Options, of_kind: Options, of_role: Options) -> Options:
    """The module's options, overridden by those of the kind and of the role; then options of the role alone."""
    options: Options = {
        name: {**option, **of_kind.get(name, {}), **of_role.get(name, {})} for name, option in documented.items()
    }
    for option in options.values():
        if option.get("default", "") is None:
            del option["default"]
        passed = "{{ <variable> }}" if "default" in option else "{{ <variable> | default(omit) }}"
        option.setdefault("passed", passed if option.get("variable", True) else None)
    return {**options, **{name: option for name, option in of_role.items() if name not in documented}}


def _passed(role: str, name: str, option: "dict[str, Any]") -> str:
    return " ".join(option["passed"].split()).replace("<variable>", f"{role}_{name}").replace("<role>", role)


def _spec(role: str, module: str, option: "dict[str, Any]") -> "dict[str, Any]":
    """An argument spec, with the descriptions of suboptions."""
    spec: "dict[str, Any]" = {key: option[key] for key in KEYS if key in option}
    if option.get("suboptions"):
        spec["options"] = {
            name: {"description": [in_role(role, module, text) for text in paragraphs(suboption)]}
            | _spec(role, module, suboption)
            for name, suboption in option["suboptions"].items()
        }
    return spec


def in_role(role: str, module: str, text: str) -> str:
    """A sentence of the module with the role's names: O(source) becomes O(clocksource_source)."""
    text = OPTION.sub(rf"O({role}_\g<1>\g<2>)", text)
    return RETURNED.sub(rf"RV({COLLECTION}{module}#module:\g<1>)", text)
