# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's side of tune."""

from __future__ import annotations

import gc
import re
from typing import Any

from ansible.plugins.action.normal import ActionModule as NormalAction
from ansible.template import is_trusted_as_template

_CONFIRM = "nearmetal.ec2.confirm"
_VARIABLE = re.compile(r"\{\{ (tune_\w+) \}\}")


class ActionModule(NormalAction):
    """Runs the module as any other, at less cost to the controller: what it does is done for each host of a fleet."""

    @classmethod
    def finalize_task_arg(cls, name: str, value: Any, templar: Any, context: Any) -> Any:
        """The argument's value. The role hands each of its variables on; a template for each was compiled per host.

        Ansible asks this since 2.19. One that doesn't would compile the templates, and nothing else would differ.
        """
        found = _VARIABLE.fullmatch(value) if isinstance(value, str) and is_trusted_as_template(value) else None
        if found and found[1] in templar.available_variables:
            value = templar.available_variables[found[1]]
        return super().finalize_task_arg(name, value, templar, context)

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The module's result.

        Once per run Ansible parses all that the module imports, to pack it. Among millions of syntax nodes the garbage
        collector finds nothing and takes two fifths of the time; the process is a fork that ends with the task.
        """
        gc.disable()
        try:
            result: dict[str, Any] = super().run(tmp, task_vars)
            if "confirm_within" in result and not self._task.check_mode:
                result.update(self._confirmed(task_vars))
            return result
        finally:
            gc.enable()

    def _confirmed(self, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """What to add to the result when a new connection has shown that the host can still be reached.

        Here and not in a task of its own, because another host's failure may end the play before that.
        """
        self._connection.reset()
        told = self._execute_module(module_name=_CONFIRM, module_args={}, task_vars=task_vars)
        self._remove_tmp_path(self._connection._shell.tmpdir)
        if told.get("changed"):
            return {}
        why = told.get("msg", "") if told.get("failed") else "too late: the host has taken it back"
        return {"failed": True, "msg": f"the network change could not be confirmed: {why}"}
