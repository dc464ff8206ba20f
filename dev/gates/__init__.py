# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The project's own rules. A gate takes the working copy and names every place that breaks its rule."""

from __future__ import annotations

import ast
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Callable


@dataclass(frozen=True)
class Copy:
    """A working copy: its files as git knows or would add them, read once."""

    root: Path

    @cached_property
    def names(self) -> "list[str]":
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=self.root,
            stdout=subprocess.PIPE,
            check=True,
        )
        names = {name for name in listed.stdout.decode().split("\0") if name}
        return sorted(name for name in names if (self.root / name).is_file())

    def having(self, *suffixes: str, below: str = "") -> "list[str]":
        """The files with one of these endings, below a folder."""
        return [name for name in self.names if name.endswith(suffixes) and name.startswith(below)]

    def text(self, name: str) -> str:
        """The file's text; bytes that aren't UTF-8 become replacement characters."""
        return (self.root / name).read_text(encoding="utf-8", errors="replace")

    def tree(self, name: str) -> ast.Module:
        """The file as a syntax tree. Raises SyntaxError, which the compile test reports too."""
        return ast.parse(self.text(name), filename=name)


Gate = Callable[[Copy], "list[str]"]
