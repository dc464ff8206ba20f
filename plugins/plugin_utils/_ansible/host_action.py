# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's side of the modules that work on a host. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action.normal import ActionModule as NormalAction

from . import by_agent, diffs, variables
from .artifacts import with_artifact
from .interpreter import explained
from .variables import unknown_type


class StateAction(NormalAction):
    """Runs the module of the task's name; names variables that nothing reads, and a Python that can't run it.

    With `--diff` any callback shows whose a difference is, and each file by itself.
    """

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The module's result."""
        result = explained(self, self.on_host(tmp, task_vars), task_vars or {})
        name = self._task.delegate_to or (task_vars or {}).get("inventory_hostname", "")
        if self._task.diff and diffs.is_of_host(result.get("diff")):
            result["diff"] = diffs.differences(name, result["diff"])
        if result.get("failed") and "msg" in result:
            result["msg"] = variables.as_typed(str(result["msg"]), self._task)
        if "findings" in result:
            result = with_artifact(result, self._task, name)
        return variables.warn(result, self._task.action, task_vars or {})

    def on_host(self, tmp: str | None, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """What the module answers."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        return result


_ONLY_LOOK = ("_facts", "capture")  # with which the names of modules end


class HostAction(StateAction):
    """Has the agent do the task of the module's name."""

    def on_host(self, tmp: str | None, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """What the agent answers, with the facts that other modules found before."""
        result = self.do_task(task_vars)
        observed = result.get("ansible_facts", {}).get("nearmetal")
        # Ansible replaces a fact as a whole. With delegate_facts the facts belong to another host than these variables.
        known = (task_vars or {}).get("ansible_facts", {}).get("nearmetal")
        if isinstance(observed, dict) and isinstance(known, dict) and not self._task.delegate_facts:
            result["ansible_facts"]["nearmetal"] = {**known, **observed}
        return result

    def do_task(self, task_vars: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
        """The result of the task. Most hosts of an audit have no agent, and a job can't ask for one."""
        module = self._task.action.rpartition(".")[2]
        sends = module.endswith(_ONLY_LOOK) or self._task.check_mode or bool(self._task.async_val)
        result = by_agent.do(self, module, self._task.args, task_vars, sends, more)
        sentence = unknown_type(self._task.args.get("instance_type"))
        return {**result, "warnings": [*(result.get("warnings") or ()), sentence]} if sentence else result
