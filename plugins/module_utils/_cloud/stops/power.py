# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls that stop, change, start and tag instances, repeated while AWS stumbles. Writes. PRIVATE to the collection."""

from __future__ import annotations

import time
from typing import Any, Dict, Iterator, List, Mapping, Optional

from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.api import FILTER_VALUES, Located, pages, parts
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.session import Target, error_code, not_allowed

_FIRST_PAUSE = 2
_LONGEST_PAUSE = 15
STATE_CODES = ("IncorrectInstanceState", "IncorrectState")
# AWS would have done it, or only the state speaks against it: a running instance is to be started, or modified.
_PERMITTED = ("DryRunOperation", *STATE_CODES)

Raw = Mapping[str, Any]


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


class Power:
    """The calls, in one account and region."""

    def __init__(self, target: Target) -> None:
        self.target = target

    def look(self, ids: List[str]) -> Dict[str, Raw]:
        """The instances now, by id. An instance without an answer is missing; the next call may find it."""
        seen: Dict[str, Raw] = {}
        for part in parts(ids, FILTER_VALUES):
            request = {"Filters": [{"Name": "instance-id", "Values": part}], "MaxResults": 1000}
            found, _error = pages(self.target, "ec2", "describe_instances", "Reservations", request)
            answers = [answer for reservation in found for answer in reservation.get("Instances", ())]
            seen.update((answer["InstanceId"], answer) for answer in answers if answer.get("InstanceId"))
        return seen

    def call(self, operation: str, **request: Any) -> Optional[BaseException]:
        """One call; what boto made of it when it failed. AWS may have carried it out all the same."""
        try:
            self.target.call("ec2", operation, **request)
        except self.target.boto.errors as error:
            return error
        return None

    def insist(self, seconds: float, operation: str, **request: Any) -> Optional[BaseException]:
        """Repeat a call until AWS accepts it or refuses it for good; the last error. The call must be repeatable."""
        error = None
        for _attempt in attempts(seconds):
            error = self.call(operation, **request)
            if error is None or not self.target.boto.passes(error):
                break
        return error

    def forbidden(self, seconds: float, operation: str, **request: Any) -> str:
        """Why AWS would not carry out a call; empty when it would."""
        error = self.insist(seconds, operation, DryRun=True, **request)
        if error is None:
            return f"{self.target.name}: {_title(operation)}: this endpoint does not know DryRun"
        return "" if error_code(error) in _PERMITTED else self.explain(operation, error)

    def explain(self, operation: str, error: BaseException) -> str:
        """An error in one sentence, which names the permission when that is what is missing."""
        name = _title(operation)
        permission = f"; the permission is ec2:{name}" if not_allowed(error) else ""
        return self.target.boto.explain(error, f"{self.target.name}: {name}") + permission


def state_of(answer: Optional[Raw]) -> str:
    """The state in an answer; empty when there is no answer."""
    return str(answer.get("State", {}).get("Name", "")) if answer else ""


def by_target(found: Mapping[str, Located], ids: List[str]) -> List[List[str]]:
    """The ids, those of one account and region together."""
    names = {found[instance_id].target.name: None for instance_id in ids}
    return [[instance_id for instance_id in ids if found[instance_id].target.name == name] for name in names]


def _title(operation: str) -> str:
    return "".join(word.capitalize() for word in operation.split("_"))
