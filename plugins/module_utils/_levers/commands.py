# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shell commands that set what levers set, for people to read. PRIVATE to the collection."""

from __future__ import annotations

import os
from typing import List, Optional, Sequence


def quoted(text: object) -> str:
    """A text as one word of the shell."""
    import shlex  # imported late: only a run that shows commands needs it

    return shlex.quote(str(text))


def echo(path: str, text: object) -> str:
    """The command that writes a value to a kernel file."""
    return f"echo {quoted(text)} > {quoted(path)}"


def echo_each(text: object, variable: str, words: Sequence[object], path: str) -> str:
    """The command that writes one value to several kernel files; `path` names the variable of the loop."""
    if len(words) == 1:
        return echo(path.replace(f"${variable}", str(words[0])), text)
    return f"for {variable} in {_listed(words)}; do echo {quoted(text)} > {path}; done"


def _listed(words: Sequence[object]) -> str:
    """The words of a loop; many numbers in a row by their first and last."""
    if len(words) > 4 and isinstance(words[0], int) and list(words) == list(range(words[0], words[0] + len(words))):
        return f"$(seq {words[0]} {words[-1]})"
    return " ".join(map(str, words))


def file_commands(path: str, text: Optional[str], mode: str = "") -> List[str]:
    """The commands that write a file with this text, or remove it."""
    if text is None:
        return [f"rm -f {quoted(path)}"]
    mark = "EOF"
    while mark in text.splitlines():
        mark += "_"
    end = "" if text.endswith("\n") else "\n"
    made = [
        f"mkdir -p {quoted(os.path.dirname(path))}",
        f"cat > {quoted(path)} <<'{mark}'\n{text}{end}{mark}",
    ]
    return [*made, f"chmod {mode} {quoted(path)}"] if mode else made
