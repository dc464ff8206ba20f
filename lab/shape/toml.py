# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read a TOML table of the lab strictly: a wrong type or an unknown key names the file and the key."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import tomllib

from lab.error import LabError

T = TypeVar("T")


class Table:
    """One table of a file; `take` removes and returns a value, `done` refuses the keys that are left."""

    def __init__(self, values: dict[str, object], where: str) -> None:
        self._values = dict(values)
        self._where = where

    @classmethod
    def read(cls, path: Path) -> Table:
        """The top table of a file."""
        try:
            return cls(tomllib.loads(path.read_text(encoding="utf-8")), str(path))
        except OSError as error:
            raise LabError(f"{path}: cannot be read: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise LabError(f"{path}: not TOML: {error}") from error

    def under(self, base: Table) -> Table:
        """This table laid over `base`: tables are merged key by key, any other value replaces."""
        return Table(_merged(base._values, self._values), self._where)

    def take(self, key: str, kind: type[T], default: T | None = None) -> T:
        """The value of `key`, which must exist unless there is a default."""
        if key not in self._values:
            if default is None:
                raise LabError(f"{self._where}: {key} is missing; give it a {kind.__name__}")
            return default
        value = self._values.pop(key)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise LabError(f"{self._where}: {key} must be a {kind.__name__}, not {value!r}")
        return value

    def strings(self, key: str) -> tuple[str, ...]:
        """A list of strings; empty when absent."""
        values = self.take(key, list, [])
        if not all(isinstance(value, str) for value in values):
            raise LabError(f"{self._where}: {key} must hold strings only")
        return tuple(str(value) for value in values)

    def tables(self, key: str) -> list[Table]:
        """A list of tables; empty when absent."""
        values = self.take(key, list, [])
        if not all(isinstance(value, dict) for value in values):
            raise LabError(f"{self._where}: {key} must hold tables only")
        return [Table(value, f"{self._where}: {key}") for value in values]

    def pairs(self, key: str) -> dict[str, str]:
        """A table of strings; empty when absent."""
        values = self.take(key, dict, {})
        if not all(isinstance(value, str) for value in values.values()):
            raise LabError(f"{self._where}: {key} must hold strings only")
        return {str(name): str(value) for name, value in values.items()}

    def table(self, key: str) -> Table | None:
        """A table; null when absent."""
        return Table(self.take(key, dict), f"{self._where}: {key}") if key in self._values else None

    def done(self) -> None:
        """Raise LabError when keys are left."""
        if self._values:
            raise LabError(f"{self._where}: unknown key {', '.join(sorted(self._values))}; see lab/README.md")


def _merged(base: dict[str, object], over: dict[str, object]) -> dict[str, object]:
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        merged[key] = _merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged
