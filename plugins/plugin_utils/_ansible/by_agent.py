# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks that the agent does on a host: its own agent, or one that is sent along. PRIVATE to the collection."""

from __future__ import annotations

import base64
from typing import Any, Dict, Mapping, Optional

from ansible.plugins.action import ActionBase

from ...module_utils._host import bundle
from ...module_utils._version import VERSION

_MODULE = "nearmetal.ec2.run_agent"


def encoded(measuring: bool = False) -> str:
    """The agent as it is sent along, with what measures, as `prove` does, or without."""
    return base64.b64encode(bundle.build(VERSION, measuring)).decode()


# Once per run of Ansible, which loads this before it starts a worker for each host.
_MARK = bundle.mark(VERSION).decode()
_AGENT = encoded()


def do(
    action: ActionBase,
    task: str,
    wanted: Mapping[str, Any],
    task_vars: Optional[Mapping[str, Any]],
    sends: bool = False,
    more: Optional[Mapping[str, Any]] = None,
) -> Dict[str, Any]:
    """The result of a task; `sends` if the agent goes along at once, because the host probably has none.

    `more` is what the task takes beside the options of its module.
    """
    order = {"task": task, "wanted": dict(wanted), "more": dict(more or {}), "mark": _MARK}
    if not sends:
        result = _execute(action, order, task_vars)
        if result.get("answered") is not False:
            return result
    return _execute(action, {**order, "agent": _AGENT}, task_vars)


def measure(
    action: ActionBase, task: str, wanted: Mapping[str, Any], task_vars: Optional[Mapping[str, Any]], agent: str
) -> Dict[str, Any]:
    """The result of a task that measures, of which the host's own agent knows nothing."""
    return _execute(action, {"task": task, "wanted": dict(wanted), "agent": agent}, task_vars)


def _execute(action: ActionBase, order: Dict[str, Any], task_vars: Optional[Mapping[str, Any]]) -> Dict[str, Any]:
    wrap_async = bool(action._task.async_val) and not action._connection.has_native_async
    result: Dict[str, Any] = action._execute_module(
        module_name=_MODULE, module_args=order, task_vars=task_vars, wrap_async=wrap_async
    )
    return result
