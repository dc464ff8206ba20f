# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a callback reads from a task's result with any ansible-core, and what an action adds for AWX. PRIVATE."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping

from ansible.playbook.task import Task

from .._clean import Budget

_FLAGS = ("changed", "reboot_required", "kept")
_WORDS = ("msg", "workload", "record")
_MOST_CHARACTERS = 2000  # of a host; a workflow hands the artifacts of all hosts to its next job
_TEMPLATE = re.compile(r"\{(?=[{%#])")


class _Older:
    """A result of ansible-core 2.16 to 2.18; all that isn't named here is Ansible's own."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.host, self.task, self.result = inner._host, inner._task, inner._result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def result_of(result: Any) -> Any:
    """The result with `host`, `task` and `result`."""
    return result if hasattr(result, "result") else _Older(result)


def warnings(result: Any) -> List[str]:
    if hasattr(result, "warnings"):
        return [str(warning.event.msg) for warning in result.warnings]
    return list(map(str, result.result.get("warnings") or ()))


def deprecations(result: Any) -> List[str]:
    if hasattr(result, "deprecations"):
        return [str(deprecation.event.msg) for deprecation in result.deprecations]
    return [str(deprecation.get("msg", "")) for deprecation in result.result.get("deprecations") or ()]


def follows_contract(result: Any) -> bool:
    """Whether a task's result is that of a state module: it has lists of actions and findings.

    A cloud module's result covers many hosts; `cloud_findings` gives each host its own part.
    """
    if not isinstance(result, Mapping) or "instances" in result:
        return False
    return all(isinstance(result.get(name), (list, tuple)) for name in ("findings", "actions"))


def error_of_loop(result: Mapping[str, Any]) -> str:
    """The error of the last item of a loop that failed without a report; empty when there is none."""
    items = [item for item in result.get("results") or () if isinstance(item, Mapping) and not follows_contract(item)]
    # Since 2.21 Ansible keeps only the exception of a failed item.
    failed = [item for item in items if item.get("failed") is True or "exception" in item]
    return str(failed[-1].get("msg") or "failed") if failed else ""


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
    verdict = result.get("verdict")
    if isinstance(verdict, dict) and "verdict" in verdict:
        kept["verdict"] = str(verdict["verdict"])
    data = {"nearmetal": {"hosts": {host: {task.action.rpartition(".")[2]: kept}}}}
    # AWX takes only what belongs to the run as a whole, so the hosts are keys of it.
    return {**result, "ansible_stats": {"data": data, "per_host": False, "aggregate": True}}


def _without_templates(value: Any) -> Any:
    """The value without the marks of a template: the next job has the artifacts as variables."""
    if isinstance(value, list):
        return [_without_templates(item) for item in value]
    return _TEMPLATE.sub("{ ", value) if isinstance(value, str) else value
