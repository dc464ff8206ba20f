# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's side of tune."""

from __future__ import annotations

import base64
from typing import Any

from ansible import constants as C

from ..module_utils._host import bundle
from ..module_utils._version import VERSION
from ..plugin_utils._ansible.plays import CALLBACK
from ..plugin_utils._ansible.state_action import StateAction

_CONFIRM = "nearmetal.ec2.confirm"
_BY_AGENT = "nearmetal.ec2.tune_by_agent"
# Once per run of Ansible, which loads this before it starts a worker for each host.
_MARK = bundle.mark(VERSION).decode()
_AGENT = base64.b64encode(bundle.build(VERSION)).decode()


class ActionModule(StateAction):
    """Runs the host's agent, or else the module as any other, and confirms a network change over a new connection."""

    def on_host(self, tmp: str | None, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """The module's result."""
        return (self._planned if self._task.check_mode else self._done)(tmp, task_vars)

    def _planned(self, tmp: str | None, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """What a run would do. An agent is sent along, because most hosts of an audit have none.

        To pack the module `tune` costs a fleet much more.
        """
        return self._by_agent(task_vars, agent=_AGENT, drawn=True) or super().on_host(tmp, task_vars)

    def _done(self, tmp: str | None, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        drawn = C.DEFAULT_STDOUT_CALLBACK == CALLBACK
        result = self._by_agent(task_vars, drawn=drawn) or super().on_host(tmp, task_vars)
        if "confirm_within" in result:
            result.update(self._confirmed(task_vars))
        return result

    def _by_agent(self, task_vars: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
        """The result of the host's agent, or of the one sent along; empty when neither could answer."""
        if self._task.async_val:
            return {}  # the module itself goes on after the connection
        arguments = dict(self._task.args)
        request = {"mark": _MARK, "wanted": arguments, **more}
        result: dict[str, Any] = self._execute_module(module_name=_BY_AGENT, module_args=request, task_vars=task_vars)
        if result.get("answered") is False:
            return {}
        if "invocation" in result:
            result["invocation"] = {"module_args": arguments}
        self._remove_tmp_path(self._connection._shell.tmpdir)
        return result

    def _confirmed(self, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """What to add to the result when a new connection has shown that the host can still be reached.

        This isn't a task of its own, because another host's failure may end the play before that task.
        """
        self._connection.reset()
        confirmed = self._execute_module(module_name=_CONFIRM, module_args={}, task_vars=task_vars)
        self._remove_tmp_path(self._connection._shell.tmpdir)
        if confirmed.get("changed"):
            return {}
        why = confirmed.get("msg", "") if confirmed.get("failed") else "too late: the host has taken the change back"
        return {"failed": True, "msg": f"the network change could not be confirmed: {why}"}
