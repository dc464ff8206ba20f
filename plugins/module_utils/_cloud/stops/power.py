# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The calls that stop, change, start and tag instances. Writes. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from ..accounts import error_code, title
from ..api import FILTER_VALUES, Raw, pages, parts
from ..calls import Calls

STATE_CODES = ("IncorrectInstanceState", "IncorrectState")
# AWS would have done it, or only the state speaks against it: a running instance is to be started, or modified.
_PERMITTED = ("DryRunOperation", *STATE_CODES)


class Power(Calls):
    """The calls about instances."""

    def look(self, ids: List[str]) -> Dict[str, Raw]:
        """The instances now, by id. An instance without an answer is missing; the next call may find it."""
        answers: Dict[str, Raw] = {}
        for part in parts(ids, FILTER_VALUES):
            request = {"Filters": [{"Name": "instance-id", "Values": part}], "MaxResults": 1000}
            reservations, _error = pages(self.target, "ec2", "describe_instances", "Reservations", request)
            instances = [answer for reservation in reservations for answer in reservation.get("Instances", ())]
            answers.update((answer["InstanceId"], answer) for answer in instances if answer.get("InstanceId"))
        return answers

    def forbidden(self, seconds: float, operation: str, **request: Any) -> str:
        """Why AWS would not carry out a call; empty when it would."""
        _answer, error = self.repeat(seconds, operation, DryRun=True, **request)
        if error is None:
            return f"{self.target.name}: {title(operation)}: this endpoint does not know DryRun"
        return "" if error_code(error) in _PERMITTED else self.explain(operation, error)


def state_of(answer: Optional[Raw]) -> str:
    """The state in an answer; empty when there is no answer."""
    return str(answer.get("State", {}).get("Name", "")) if answer else ""
