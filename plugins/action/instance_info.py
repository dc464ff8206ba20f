# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's side of modules that ask AWS about instances, which meta/runtime.yml sends here."""

from __future__ import annotations

from typing import Any

from ..plugin_utils._ansible.by_agent import StateAction
from ..plugin_utils._ansible.instances import drivers, list_instances, reports, unconfirmed, volumes


class ActionModule(StateAction):
    """Runs the module, and says what only the controller can see.

    Of ebs and enhanced_networking it says what the hosts of the play report, unless the task gives that.
    """

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The module's result."""
        report = {"ebs": volumes, "enhanced_networking": drivers}.get(self._task.action.rpartition(".")[2])
        if report and "hosts" not in self._task.args:
            hosts = list_instances(task_vars or {})
            filled: dict[str, Any] = {"hosts": reports(report, hosts)}
            if report is drivers:
                # A host may claim any instance, and say of it what it likes.
                filled["unconfirmed"] = unconfirmed(hosts)
            self._task.args = {**filled, **self._task.args}
        return super().run(tmp, task_vars)
