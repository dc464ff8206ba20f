# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's side of enhanced_networking: what the hosts of the play say of their drivers."""

from __future__ import annotations

from typing import Any

from ..plugin_utils._ansible.by_agent import StateAction
from ..plugin_utils._ansible.instances import drivers, list_instances, reports, unconfirmed


class ActionModule(StateAction):
    """Runs the module, with the drivers of the play's hosts unless the task gives others."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The module's result."""
        if "hosts" not in self._task.args:
            hosts = list_instances(task_vars or {})
            # A host may claim any instance, and say of it what it likes.
            filled = {"hosts": reports(drivers, hosts), "unconfirmed": unconfirmed(hosts)}
            self._task.args = {**filled, **self._task.args}
        return super().run(tmp, task_vars)
