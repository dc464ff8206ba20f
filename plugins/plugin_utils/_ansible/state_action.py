# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's side of most modules: what only it can tell the user. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action.normal import ActionModule as NormalAction

from . import diffs, variables
from .artifacts import with_artifact
from .interpreter import explained


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
