# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run did to a host, as data of the run: AWX calls them artifacts. PRIVATE to the collection."""

from __future__ import annotations

import re
from typing import Any, Dict, Optional

from ansible.playbook.task import Task

from .._clean import Budget

_FLAGS = ("changed", "reboot_required", "kept")
_WORDS = ("msg", "workload", "record")
_MOST_CHARACTERS = 2000  # of a host; a workflow hands the artifacts of all hosts to its next job
_TEMPLATE = re.compile(r"\{(?=[{%#])")


def with_artifact(result: Dict[str, Any], task: Task, host: str) -> Dict[str, Any]:
    """The module's result, with its main values in the form that ansible.builtin.set_stats returns.

    There are none with `no_log`, because Ansible prints them nevertheless, nor of a task that isn't over.
    """
    if task.no_log or task.async_val or result.get("failed") or not result.get("msg"):
        return result
    kept: Dict[str, Any] = {"check_mode": bool(task.check_mode)}
    kept.update((name, result[name]) for name in _FLAGS if isinstance(result.get(name), bool))
    budget = Budget(_MOST_CHARACTERS)
    kept.update((name, _without_templates(budget.value(result[name], depth=1))) for name in _WORDS if name in result)
    verdict = _verdict(result)
    if verdict is not None:
        kept["verdict"] = verdict
    data = {"nearmetal": {"hosts": {host: {task.action.rpartition(".")[2]: kept}}}}
    # AWX takes only what belongs to the run as a whole, so the hosts are keys of it.
    return {**result, "ansible_stats": {"data": data, "per_host": False, "aggregate": True}}


def _verdict(result: Dict[str, Any]) -> Optional[str]:
    verdict = result.get("verdict")
    return str(verdict["verdict"]) if isinstance(verdict, dict) and "verdict" in verdict else None


def _without_templates(value: Any) -> Any:
    """The value without the marks of a template: the next job has the artifacts as variables."""
    if isinstance(value, list):
        return [_without_templates(item) for item in value]
    return _TEMPLATE.sub("{ ", value) if isinstance(value, str) else value
