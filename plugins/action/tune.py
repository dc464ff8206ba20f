# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's side of tune."""

from __future__ import annotations

import gc
from typing import Any

from ansible.plugins.action.normal import ActionModule as NormalAction


class ActionModule(NormalAction):
    """Runs the module as any other, without looking for garbage meanwhile.

    Once per run Ansible parses all that the module imports, to pack it. Among millions of syntax nodes the collector
    finds nothing and takes two fifths of the time; the process is a fork that ends with the task.
    """

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The module's result."""
        gc.disable()
        try:
            result: dict[str, Any] = super().run(tmp, task_vars)
            return result
        finally:
            gc.enable()
