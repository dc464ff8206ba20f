# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's side of the modules for hosts, which meta/runtime.yml sends here, and of run_agent itself."""

from __future__ import annotations

from typing import Any

from ..plugin_utils._ansible.by_agent import HostAction, StateAction


class ActionModule(HostAction):
    """Has the agent do the task, and says what only the controller can see."""

    def on_host(self, tmp: str | None, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """The module's result."""
        itself = self._task.action.rpartition(".")[2] == "run_agent"
        return (StateAction if itself else HostAction).on_host(self, tmp, task_vars)
