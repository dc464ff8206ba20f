# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gates on options: what must follow from the modules' documentation, or come with it."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from typing import Any, Iterator

from dev.gates import Copy
from dev.generate import files, roles
from dev.generate.documents import documentation, groups, modules


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
    tuning = groups(copy).get("tuning", [])
    return [
        f"plugins/modules/{module}.py: plans a concern, and isn't in the group tuning"
        for module in _concerns(copy)
        if module not in tuning
    ]


def _concerns(copy: Copy) -> "list[str]":
    return [module for module in modules(copy) if "import CONCERN\n" in copy.text(f"plugins/modules/{module}.py")]


def options_have_a_case(copy: Copy) -> "list[str]":
    """Each option of a concern is wanted in a case of tests/unit/plan, but for `state` and what `tune` has for all."""
    common = {"state", *(documentation(copy, "tune")["options"] if "tune" in modules(copy) else ())}
    problems = []
    for concern in _concerns(copy):
        names = set(_documented(documentation(copy, concern).get("options") or {}))
        folder = f"tests/unit/plan/{concern}/"
        cases = [json.loads(copy.text(name))["wanted"] for name in copy.having(".json", below=folder)]
        wanted = {option for case in cases for option in _wanted(case)}
        # An entry of a list sets for one device what an option of the same name sets for all.
        wanted |= {option.partition(".")[2] for option in wanted}
        single = {option for option in names if option.partition(".")[2] in names}
        problems += [f"{folder}: no case wants {option}" for option in sorted(names - common - single - wanted)]
    return problems


def _documented(options: "dict[str, dict[str, Any]]") -> "Iterator[str]":
    for name, option in options.items():
        yield name
        yield from (f"{name}.{inner}" for inner in _documented(option.get("suboptions") or {}))


def _wanted(values: "dict[str, Any]") -> "Iterator[str]":
    for name, value in values.items():
        yield name
        for entry in value if isinstance(value, list) else [value]:
            yield from (f"{name}.{inner}" for inner in _wanted(entry if isinstance(entry, dict) else {}))


@dataclass(frozen=True)
class _Release(Copy):
    """The files as they were at a commit."""

    commit: str

    @property
    def names(self) -> "list[str]":
        return _git(self, "ls-tree", "-r", "--name-only", self.commit).splitlines()

    def text(self, name: str) -> str:
        return _git(self, "show", f"{self.commit}:{name}")


def new_options_have_a_fragment(copy: Copy) -> "list[str]":
    """A file of changelogs/fragments names each module, option and knob that the last release didn't have."""
    commit = _git(copy, "log", "-1", "--format=%H", "--", "CHANGELOG.rst").strip()
    if not commit:
        return []
    before, after = (_named(files) for files in (_Release(copy.root, commit), copy))
    words = {word for name in copy.having(".yml", below="changelogs/fragments/") for word in _words(copy.text(name))}
    return [
        f"plugins/modules/{module}.py: {name} is new since {commit[:12]}, and no changelog fragment names it"
        for module, names in after.items()
        for name in sorted(names - before[module] if module in before else {module})
        if not {name, f"{module}_{name}"} & words
    ]


def _named(copy: Copy) -> "dict[str, set[str]]":
    """Module → its options, and the knobs of its concern, of which some are no option."""
    named = {module: set(documentation(copy, module).get("options") or {}) for module in modules(copy)}
    for name in copy.having(".py", below="plugins/module_utils/_concerns/"):
        knobs = set(re.findall(r'\bKnob\(\s*[\w"]+, "(\w+)"', copy.text(name)))
        concern = name.split("/")[3].partition(".")[0]
        named.setdefault(concern, set()).update(knobs)
    return named


def _words(text: str) -> "set[str]":
    return set(re.findall(r"\w+", text))


def _git(copy: Copy, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=copy.root, stdout=subprocess.PIPE, text=True, check=False).stdout
