# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an action starts beside its module: modules on another host, and a reboot. PRIVATE to the collection.

Ansible connects an action to one host. The other host is reached as with `delegate_to`: with its own variables, and
with the keywords and options of the play that it has no variable for. Only `become` is left to the host's variables.
"""

from __future__ import annotations

import copy
import os
import re
from typing import Any, Dict, Mapping, Tuple

from ansible import constants as C
from ansible.errors import AnsibleError
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase
from ansible.plugins.loader import become_loader, connection_loader

from ...module_utils._error import NearmetalError

# Variables of a host that replace a password of the command line.
_PASSWORDS = {
    "password": ("ansible_password", "ansible_ssh_pass", "ansible_ssh_password"),
    "become_pass": ("ansible_become_password", "ansible_become_pass"),
}
_OF_A_METHOD = re.compile("ansible_(?!ssh_)[a-z0-9]+_pass")  # such as ansible_sudo_pass
_USED = {
    *("inventory_hostname", "ansible_facts", "ansible_python_interpreter"),
    *(name for names in C.MAGIC_VARIABLE_MAPPING.values() for name in names),
}


def action_on(
    action: ActionBase, name: str, task_vars: Dict[str, Any], become: bool = False
) -> Tuple[ActionBase, Dict[str, Any]]:
    """A copy of the action whose modules run on the host `name`, and the variables with which to run them.

    They run as root if the host's variables say so, or by default if `become` does. Raises NearmetalError when the
    variables don't say how to reach the host.
    """
    try:
        return _action_on(action, name, task_vars, become)
    except AnsibleError as error:
        raise NearmetalError(f"the variables of {name} don't say how to reach it: {error}") from None


def _action_on(
    action: ActionBase, name: str, task_vars: Dict[str, Any], become: bool
) -> Tuple[ActionBase, Dict[str, Any]]:
    value = task_vars["hostvars"][name]
    task = action._task.copy()
    task.delegate_to = name
    play = task.get_play()
    task.connection = value.get("ansible_connection") or (play.connection if play else C.DEFAULT_TRANSPORT)
    task.become = boolean(value.get("ansible_become", become))
    variables = {variable: value[variable] for variable in _USED if variable in value}
    variables["ansible_facts"] = dict(variables.get("ansible_facts") or {})  # a Python that is discovered is added
    delegated = {**task_vars, "ansible_delegated_vars": {name: variables}}
    before = action._play_context
    context = before.set_task_and_variable_override(task=task, variables=delegated, templar=action._templar)
    context.connection = task.connection
    passwords = _passwords(before, task_vars)
    for key, names in _PASSWORDS.items():
        # The context is a copy of that of the action's host, and plugins use it where a host has no password.
        own = [value[variable] for variable in names if variable in value]
        setattr(context, key, own[0] if own else passwords.get(key, ""))
    connection = connection_loader.get(
        task.connection, context, new_stdin=None, task_uuid=task._uuid, ansible_playbook_pid=str(os.getppid())
    )
    if connection is None:
        raise AnsibleError(f"there is no connection plugin {task.connection}")
    method = value.get("ansible_become_method") or task.become_method
    connection.set_become_plugin(become_loader.get(method) if task.become else None)
    keys = {**task.dump_attrs(), "timeout": context.timeout, **passwords}
    del keys["retries"]
    for plugin in filter(None, (connection, connection._shell, connection.become)):
        plugin.set_options(task_keys=keys, var_options=value)
    other = copy.copy(action)
    other._task, other._play_context, other._connection = task, context, connection
    other._discovered_interpreter, other._discovered_interpreter_key, other._used_interpreter = False, None, None
    return other, delegated


def _passwords(context: Any, task_vars: Dict[str, Any]) -> Dict[str, str]:
    """The passwords of the command line, which hold for all hosts; not those of the variables of the action's host."""
    of_methods = [name for name in task_vars if _OF_A_METHOD.fullmatch(name)]
    variables = {**_PASSWORDS, "become_pass": (*_PASSWORDS["become_pass"], *of_methods)}
    return {
        key: getattr(context, key)
        for key, names in variables.items()
        if getattr(context, key, "") and not any(name in task_vars for name in names)
    }


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
