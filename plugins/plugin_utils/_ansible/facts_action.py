# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep the facts of earlier fact modules when the next one returns its own. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from .interpreter import explained


class FactsAction(ActionBase):
    """Runs the module of the task's name and adds to `ansible_facts.nearmetal` what earlier tasks found.

    Ansible replaces a fact as a whole, so `host_facts` would otherwise remove what `topology_facts` returned.
    """

    _requires_connection = True
    _supports_check_mode = True
    _supports_async = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The module's result, its facts merged into those known of the same host."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        answered = self._execute_module(task_vars=task_vars, wrap_async=self._task.async_val)
        result.update(explained(self, answered, task_vars or {}))
        observed = result.get("ansible_facts", {}).get("nearmetal")
        # With delegate_facts the facts belong to another host than these variables.
        known = (task_vars or {}).get("ansible_facts", {}).get("nearmetal")
        if isinstance(observed, dict) and isinstance(known, dict) and not self._task.delegate_facts:
            result["ansible_facts"]["nearmetal"] = {**known, **observed}
        return result
