# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several mistakes of an operator in one message. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Callable, Iterable, List

from ._error import NearmetalError

LINE = " • "  # stands before each of them: a message is one line, of which a terminal makes several
_HEAD = " mistakes:"


def several(sentences: Iterable[str]) -> str:
    """The mistakes that these sentences name, in one message: each once."""
    first, *rest = dict.fromkeys(sentences) or ("",)
    return LINE.join((f"{1 + len(rest)}{_HEAD}", first, *rest)) if rest else first


def parts_of(message: str) -> List[str]:
    """What stands before the mistakes of such a message, and each of them; any other message alone."""
    parts = message.split(LINE)
    return parts if parts[0].endswith(_HEAD) else [message]


class Mistakes:
    """Gathers what checks refuse, each in a `with` of its own, so that an operator reads of all of it at once."""

    def __init__(self, found: Iterable[str] = ()) -> None:
        self.found = list(found)

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: object, _trace: object) -> bool:
        if kind is NearmetalError:
            self.found += parts_of(str(error))[1:] or [str(error)]
        return kind is NearmetalError

    def of(self, work: Callable[..., Any], *given: Any) -> Any:
        """What this answers; nothing if it refuses what it was given."""
        with self:
            return work(*given)
        return {}

    def require_none(self) -> None:
        """Raise NearmetalError if a check refused something."""
        if self.found:
            raise NearmetalError(several(self.found))
