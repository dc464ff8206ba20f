# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `--diff` shows of a result: whose it is, and each file by itself. PRIVATE to the collection."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Mapping

from .._clean import HOST, NAME, text

_SIDES = ("before", "after")
_FILES = "files"
_STORED = "wanted"  # what the host keeps of the run, with the defaults of all options


@contextmanager
def by_file(host: str, result: Dict[str, Any]) -> Iterator[None]:
    """Within this context a result, and those of a loop, have such differences; afterwards those of the host."""
    items = result.get("results")
    parts = [part for part in (result, *(items if isinstance(items, list) else ())) if isinstance(part, dict)]
    given = [(part, part["diff"]) for part in parts if part.get("diff")]
    for part, diff in given:
        part["diff"] = differences(host, diff)
    try:
        yield
    finally:
        for part, diff in given:
            part["diff"] = diff


def is_of_host(diff: Any) -> bool:
    """Whether this is a difference as modules on a host return it, and not one of instances in the AWS API."""
    sides = [diff.get(side) for side in _SIDES] if isinstance(diff, Mapping) else []
    return any(name in side for side in sides if isinstance(side, Mapping) for name in (_FILES, _STORED))


def differences(host: str, diff: Any) -> List[Any]:
    """A difference for the settings of the host, and one per file, in the form that Ansible's callbacks take."""
    if isinstance(diff, list):
        return [difference for part in diff for difference in differences(host, part)]
    sides = [diff.get(side) if isinstance(diff, Mapping) else None for side in _SIDES]
    if not all(isinstance(side, Mapping) for side in sides):
        return [diff]
    before, after = (dict(side) for side in sides if isinstance(side, Mapping))
    old, new = (side.get(_FILES) for side in (before, after))
    files: Dict[str, List[str]] = {}
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        paths = [path for path in dict.fromkeys((*old, *new)) if _is_text(old.get(path)) and _is_text(new.get(path))]
        files = {path: [_lines(old.get(path)), _lines(new.get(path))] for path in paths}
        before[_FILES] = {path: value for path, value in old.items() if path not in files}
        after[_FILES] = {path: value for path, value in new.items() if path not in files}
        if not before[_FILES] and not after[_FILES]:
            del before[_FILES], after[_FILES]
    if files or {*before, *after} > {_STORED}:
        before.pop(_STORED, None)
        after.pop(_STORED, None)
    settings = [_difference(f"{host}, settings", before, after)] if before or after else []
    return [*settings, *(_difference(f"{host}, {path}", *texts) for path, texts in files.items())]


def _difference(title: str, before: Any, after: Any) -> Dict[str, Any]:
    header = text(title, 2 * NAME)
    return {"before": before, "after": after, "before_header": header, "after_header": header}


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _lines(value: Any) -> str:
    """The content of a file without what a terminal takes for a command; empty for an absent file."""
    lines = (value or "")[:HOST].split("\n")
    return "\n".join(map(text, lines))
