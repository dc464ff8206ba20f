# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gates on options: generated files agree with the modules' documentation."""

from __future__ import annotations

import re

from dev.gates import Copy
from dev.generate import files, roles
from dev.generate.documents import groups, modules


def generated_is_fresh(copy: Copy) -> "list[str]":
    """What follows from the modules, the suites and docs/lab_runs.csv is as `make generate` writes it."""
    problems = [f"{name}: differs from what `make generate` writes; run it" for name in files.stale(copy)]
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
            f"roles/{name}/tasks: no task uses {variable.name}; run `make generate`, or use it in a task"
            for variable in (role.variables if role else ())
            if not re.search(rf"\b{variable.name}\b", tasks)
        ]
    return problems


def concerns_share_their_options(copy: Copy) -> "list[str]":
    """Each concern's module is in the action group tuning, so that common options can be set for all at once."""
    concerns = [module for module in modules(copy) if "import CONCERN\n" in copy.text(f"plugins/modules/{module}.py")]
    tuning = groups(copy).get("tuning", [])
    return [
        f"plugins/modules/{module}.py: plans a concern, and isn't in the group tuning"
        for module in concerns
        if module not in tuning
    ]
