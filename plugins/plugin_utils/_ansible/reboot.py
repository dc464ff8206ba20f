# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rebooting the host of an action, by Ansible's own reboot. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any, Mapping

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase


def reboot(action: ActionBase, within: int, task_vars: Mapping[str, Any], message: str) -> str:
    """Reboot the host, and wait until it is back; why it isn't back in time, empty when it is."""
    task = action._task.copy()
    task.args = {"reboot_timeout": within, "msg": message}
    plugin = action._shared_loader_obj.action_loader.get(
        "ansible.builtin.reboot",
        task=task,
        connection=action._connection,
        play_context=action._play_context,
        loader=action._loader,
        templar=action._templar,
        shared_loader_obj=action._shared_loader_obj,
    )
    try:
        done = plugin.run(task_vars=dict(task_vars))
    except AnsibleError as error:
        return str(error)
    if done.get("failed") or done.get("unreachable") or not done.get("rebooted"):
        return str(done.get("msg") or "no reason given")
    return ""
