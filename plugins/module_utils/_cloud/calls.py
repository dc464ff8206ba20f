# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls that change something in EC2, repeated while AWS stumbles. Writes. PRIVATE to the collection."""

from __future__ import annotations

import time
from typing import Any, Iterator, Optional, Tuple

from .accounts import Target, not_allowed, title
from .api import Raw

BRIEF_SECONDS = 60  # for what takes AWS a few
_FIRST_PAUSE = 2
_LONGEST_PAUSE = 15


def attempts(seconds: float) -> Iterator[None]:
    """Yield at once, then after growing pauses, the last time when the seconds are over."""
    until, pause = time.monotonic() + seconds, _FIRST_PAUSE
    while True:
        yield
        left = until - time.monotonic()
        if left <= 0:
            return
        time.sleep(min(pause, left))
        pause = min(2 * pause, _LONGEST_PAUSE)


class Calls:
    """The calls, in one account and region."""

    def __init__(self, target: Target) -> None:
        self.target = target

    def call(self, operation: str, **request: Any) -> Tuple[Raw, Optional[BaseException]]:
        """One call; what boto made of it when it failed. AWS may have carried it out all the same."""
        try:
            return self.target.call("ec2", operation, **request), None
        except self.target.boto.errors as error:
            return {}, error

    def repeat(self, seconds: float, operation: str, **request: Any) -> Tuple[Raw, Optional[BaseException]]:
        """Repeat a call until AWS accepts it or refuses it for good. The call must be repeatable."""
        answer: Raw = {}
        error: Optional[BaseException] = None
        for _attempt in attempts(seconds):
            answer, error = self.call(operation, **request)
            if error is None or not self.target.boto.passes(error):
                break
        return answer, error

    def explain(self, operation: str, error: BaseException) -> str:
        """An error in one sentence, which names the permission when that is what is missing."""
        name = title(operation)
        permission = f"; the permission is ec2:{name}" if not_allowed(error) else ""
        return self.target.boto.explain(error, f"{self.target.name}: {name}") + permission
