# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's side of modules: of every one, and of those that the host's agent does, or one that is sent along.

PRIVATE to the collection.
"""

from __future__ import annotations

import base64
from typing import Any, Dict, Mapping, Optional

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase
from ansible.plugins.action.normal import ActionModule as NormalAction

from ...module_utils._error import NearmetalError
from ...module_utils._host import bundle
from ...module_utils._version import VERSION
from ...module_utils._words import sentence
from . import diffs, variables
from .interpreter import denied, explained
from .results import with_artifact
from .variables import unknown_type

_MODULE = "nearmetal.ec2.run_agent"
# Once per run of Ansible, which loads this before it starts a worker for each host.
_MARK = bundle.mark(VERSION).decode()
_ONLY_LOOK = ("_facts", "capture")  # with which the names of modules end


def encoded(measuring: bool = False) -> str:
    """The agent as it is sent along, with what measures, as `prove` does, or without."""
    return base64.b64encode(bundle.build(VERSION, measuring)).decode()


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


class StateAction(NormalAction):
    """Runs the module of the task's name; names variables that nothing reads, and a Python that can't run it.

    With `--diff` any callback shows whose a difference is, and each file by itself.
    """

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The module's result."""
        try:
            variables.require_limits(task_vars or {}, self._task.action)
            result = explained(self, self.on_host(tmp, task_vars), task_vars or {})
        except NearmetalError as error:
            return {"failed": True, "changed": False, "msg": sentence(str(error)), "mistake": True}
        except AnsibleError as error:
            result = {"failed": True, "changed": False, "msg": denied(self, error)}
            if not result["msg"]:
                raise
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
        result = do(self, module, self._task.args, task_vars, sends, more)
        sentence = unknown_type(self._task.args.get("instance_type"))
        return {**result, "warnings": [*(result.get("warnings") or ()), sentence]} if sentence else result
