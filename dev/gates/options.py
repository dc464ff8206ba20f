# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gates on options: what follows from the modules' documentation is what it should be."""

from __future__ import annotations

import re

import yaml

from dev.gates import Copy
from dev.generate import files, roles
from dev.generate.documents import COLLECTION, documentation, modules

RUNTIME = "meta/runtime.yml"


def generated_is_fresh(copy: Copy) -> "list[str]":
    """What is generated from the modules' documentation is what `make generate` writes."""
    problems = [f"{name}: differs from the modules' documentation; run `make generate`" for name in files.stale(copy)]
    problems += [
        f"{name}: no place for the table of variables; copy its two comments from another role"
        for name in (f"roles/{role}/README.md" for role in roles.names(copy))
        if name in copy.names and not files.TABLE.search(copy.text(name))
    ]
    return problems


def role_variables_arrive(copy: Copy) -> "list[str]":
    """A role's tasks use each of its variables."""
    problems = []
    for name in roles.names(copy):
        role = roles.read(copy, name)
        tasks = "\n".join(copy.text(file) for file in copy.having(".yml", below=f"roles/{name}/tasks/"))
        problems += [
            f"roles/{name}/tasks: no task uses {variable.name}"
            for variable in (role.variables if role else ())
            if not re.search(rf"\b{variable.name}\b", tasks)
        ]
    return problems


def action_groups_are_whole(copy: Copy) -> "list[str]":
    """Groups in meta/runtime.yml hold the modules whose documentation says so; each concern's module is in tuning."""
    if RUNTIME not in copy.names:
        return []
    groups = yaml.safe_load(copy.text(RUNTIME)).get("action_groups") or {}
    documented: "dict[str, set[str]]" = {group: set() for group in groups}
    for module in modules(copy):
        attributes = documentation(copy, module).get("attributes") or {}
        for group in (attributes.get("action_group") or {}).get("membership") or ():
            documented.setdefault(group[len(COLLECTION) :], set()).add(module)
    problems = [
        f"{RUNTIME}: {group} {'lacks' if module in members else 'has'} {module}, against its documentation"
        for group, members in documented.items()
        for module in sorted(members ^ set(groups.get(group) or ()))
    ]
    concerns = {module for module in modules(copy) if "import CONCERN\n" in copy.text(f"plugins/modules/{module}.py")}
    problems += [
        f"plugins/modules/{module}.py: tunes or checks a concern, and isn't in the group tuning"
        for module in sorted(concerns - documented.get("tuning", set()))
    ]
    return problems
