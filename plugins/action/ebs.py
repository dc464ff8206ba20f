# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's side of ebs: what the hosts of the play read from their volumes."""

from __future__ import annotations

from typing import Any

from ..plugin_utils._ansible.by_agent import StateAction
from ..plugin_utils._ansible.instances import list_instances, reports, volumes


class ActionModule(StateAction):
    """Runs the module, with the counters of the play's hosts unless the task gives others."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The module's result."""
        self._task.args = {"hosts": reports(volumes, list_instances(task_vars or {})), **self._task.args}
        return super().run(tmp, task_vars)
