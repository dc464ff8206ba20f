# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tasks that take back what was tuned, or keep it. PRIVATE to the collection."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Dict, Mapping

from .._engine.lease import confirmation
from .._engine.requests import restore_requests
from .._engine.run import Ask, Conditions, Run, plan_run, run
from .._host.host import WritableHost
from .answer import answer
from .task import Task


def _restore(
    execute: Callable[[WritableHost, Ask, Conditions], Run], host: WritableHost, options: Mapping[str, Any]
) -> Dict[str, Any]:
    names = options.get("concerns")
    conditions = Conditions(restores_all=names is None)
    return answer(execute, host, lambda known: restore_requests(names, known), conditions)


def _confirm(confirm: Callable[[WritableHost], bool], host: WritableHost, _options: object) -> Dict[str, Any]:
    armed = confirm(host)
    return {"changed": armed, "msg": "confirmed" if armed else "nothing waits to be confirmed"}


TASKS = {
    "confirm": Task({}, partial(_confirm, confirmation.confirm), partial(_confirm, confirmation.can_confirm)),
    "restore": Task(
        {"concerns": {"type": "list", "elements": "str"}}, partial(_restore, run), partial(_restore, plan_run)
    ),
}
