# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gates on any file: licence, leftovers, ignore lists."""

from __future__ import annotations

import ast
import re
from typing import Any, Iterator

import tomllib
import yaml

from dev.gates import Copy
from dev.gates.references import anchors

SPDX = "SPDX-License-Identifier: GPL-3.0-or-later"
# Files whose tools remove comments; REUSE.toml states their licence.
GENERATED = ("changelogs/changelog.yaml",)
# Traces of a machine or a way of working that mean nothing to a reader. The patterns don't match themselves.
TRACES = re.compile(r"/[w]ork/|/[r]oot/\.(cache|pyenv|ansible|local)|\.[l]ibrary\b|/tmp/[t]eam|\b[f]arm-|\b[s]ubagent")
# Where the concerns' facts come from, and how a comment cites one of its sections.
SOURCES = "docs/ec2.md"
CITED = re.compile(r"\bec2\.md#([\w-]+)")
EVIDENCE = "docs/evidence.md"
EVIDENCE_ID = re.compile(r"\bS[0-4]-[0-9]{2}\b")
READ_BY_OPERATORS = ("README.md", "docs/", "playbooks/", "plugins/", "roles/")
UNFINISHED = re.compile(r"\b([T]ODO|[F]IXME|[X]XX)\b")
# Keys by which a tool skips something.
LOOK_AWAY = re.compile(r"ignore|exclude|disable_error|skip|norecursedirs|deselect|omit", re.IGNORECASE)
LOOK_AWAY_WORDS = re.compile(r"^ignore|--(ignore|deselect|exclude|skip)|(^|\s)-k\b")
# Ignore files, and files with settings that belong into pyproject.toml.
IGNORE_FILES = re.compile(
    r"sanity/ignore|\.ansible-lint-ignore|\.coveragerc|\.pylintrc|(setup\.cfg|(tox|pytest)\.ini)$"
)
# The exceptions to checkers' rules, in the file where each checker looks for them; each line says why.
EXCEPTIONS = ("tests/sanity/ignore-2.21.txt", ".ansible-lint-ignore")
MOST_EXCEPTIONS = 5
EXCEPTION = re.compile(r"\S+ [a-z-]+(:[a-z-]+|\[[a-z-]+\] skip) # \S.*")
CONFIGS = (".ansible-lint", ".yamllint", ".config/molecule/config.yml")


def licence(copy: Copy) -> "list[str]":
    """Each file of ours says its licence in its first five lines; empty files have nothing to license."""
    names = copy.having(".py", ".pyi", ".yml", ".yaml", ".sh", ".toml", ".cfg", "Makefile", ".ci/run", ".j2")
    return [
        f"{name}: no `{SPDX}`"
        for name in names
        if name not in GENERATED and copy.text(name) and SPDX not in "\n".join(copy.text(name).splitlines()[:5])
    ]


def no_traces(copy: Copy) -> "list[str]":
    """Nothing names a path of the machine that it was written on, or is marked as unfinished."""
    problems = []
    for name in copy.names:
        for number, line in enumerate(copy.text(name).splitlines(), 1):
            if TRACES.search(line) or (UNFINISHED.search(line) and not name.startswith("requirements/")):
                problems.append(f"{name}:{number}: {line.strip()[:100]}")
    return problems


def nothing_ignored(copy: Copy) -> "list[str]":
    """No tool skips anything, apart from a few lines that state their reason."""
    ignoring = [name for name in copy.names if IGNORE_FILES.search(name)]
    problems = [f"{name}: an ignore file" for name in ignoring if name not in EXCEPTIONS]
    exceptions = [(name, line) for name in EXCEPTIONS if name in ignoring for line in copy.text(name).splitlines()]
    problems += [f"{name}: no reason: {line}" for name, line in exceptions if not EXCEPTION.fullmatch(line)]
    if len(exceptions) > MOST_EXCEPTIONS:
        problems.append(f"{', '.join(EXCEPTIONS)}: {len(exceptions)} exceptions, at most {MOST_EXCEPTIONS}")
    if "pyproject.toml" in copy.names:
        problems += [f"pyproject.toml: {key}" for key in _look_away(tomllib.loads(copy.text("pyproject.toml")))]
    for name in CONFIGS:
        if name in copy.names:
            problems += [f"{name}: {key}" for key in _look_away(yaml.safe_load(copy.text(name)))]
    return problems


def _look_away(value: Any, path: str = "") -> "Iterator[str]":
    if isinstance(value, dict):
        for key, inner in value.items():
            place = f"{path}.{key}".lstrip(".")
            if LOOK_AWAY.search(str(key)):
                yield place
            yield from _look_away(inner, place)
    elif isinstance(value, list):
        for inner in value:
            yield from _look_away(inner, path)
    elif isinstance(value, str) and LOOK_AWAY_WORDS.search(value):
        yield f"{path}: {value}"


def citations(copy: Copy) -> "list[str]":
    """A section of docs/ec2.md that a comment cites is there to be read."""
    guide = copy.text(SOURCES) if SOURCES in copy.names else ""
    sections = anchors(guide)
    problems = []
    for name in copy.having(".py", ".yml", ".md", ".json", ".csv"):
        for number, line in enumerate(copy.text(name).splitlines(), 1):
            missing = [cited for cited in CITED.findall(line) if cited not in sections]
            problems += [f"{name}:{number}: {SOURCES} has no section {cited}" for cited in missing]
    return problems


def ids_stay_inside(copy: Copy) -> "list[str]":
    """What an operator reads names a source in words; the ids of docs/evidence.md are for those who maintain it."""
    read = [name for name in copy.names if name.startswith(READ_BY_OPERATORS) and name != EVIDENCE]
    return [
        f"{name}:{number}: {line.strip()[:80]}"
        for name in read
        for number, line in enumerate(copy.text(name).splitlines(), 1)
        if EVIDENCE_ID.search(line)
    ]


def sources_in_words(copy: Copy) -> "list[str]":
    """A finding, a message and a playbook name the source itself: only comments send a reader to docs/ec2.md."""
    return [
        *(
            f"{name}:{node.lineno}: {node.value.strip()[:80]}"
            for name in copy.having(".py", below="plugins/")
            for node in ast.walk(copy.tree(name))
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and CITED.search(node.value)
        ),
        *(
            f"{name}:{number}: {line.strip()[:80]}"
            for name in copy.having(".yml", below="playbooks/")
            for number, line in enumerate(copy.text(name).splitlines(), 1)
            if CITED.search(line)
        ),
    ]
