# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run returns to the task that asked for it: the result contract, failed or not. PRIVATE to the collection."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Callable, Dict, Mapping

from .._engine.result import described
from .._engine.run import PLAIN, Ask, Conditions, Run
from .._error import NearmetalError
from .._host.host import WritableHost


def answer(
    execute: Callable[[WritableHost, Ask, Conditions], Run],
    host: WritableHost,
    ask: Ask,
    conditions: Conditions = PLAIN,
    named: Mapping[str, Any] = MappingProxyType({}),
    show_commands: bool = False,
) -> Dict[str, Any]:
    """`execute`, which is `run` or `plan_run`, with what is asked; `failed` is in it when something went wrong.

    `named` is in it as it is. `show_commands`, for what is planned, adds the shell commands that would do the same.
    """
    try:
        done = execute(host, ask, conditions)
    except NearmetalError as error:
        return {"failed": True, "msg": str(error), **named}
    result = {**described(done.facts, done.outcomes), **named}
    if done.confirm_within:
        result["confirm_within"] = done.confirm_within
    if show_commands:
        from .._agent.commands import script

        result["commands"] = script(host, done.outcomes)
    if result["errors"]:
        result["failed"] = True
    return result
