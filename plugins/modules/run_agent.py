#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: run_agent
short_description: Run a task of this collection by its agent
version_added: 0.1.0
description:
  - The tasks of the modules for hosts run this one. Write the name of such a module in a playbook,
    for example P(nearmetal.ec2.tune#module).
  - If the host has the agent of exactly this collection, and only root can change it, the module has it do the task. So
    the same code isn't sent and compiled again.
  - Otherwise the module runs the agent that the task sends along. Without that it does nothing and says so.
options:
  agent:
    description: The agent to run where the host has none, in base64. It runs from memory.
    type: str
  mark:
    description: Version and digest of the installed agent that may run, as the agent itself begins. None may run
      without it.
    type: str
  more:
    description: What the task's action plugin adds to the options.
    type: dict
    default: {}
  task:
    description: The module whose task the agent does, without the collection's name.
    type: str
    required: true
  wanted:
    description: The options of that module.
    type: dict
    required: true
extends_documentation_fragment:
  - nearmetal.ec2.attributes
author:
  - The nearmetal.ec2 authors (@nearmetal)
"""

EXAMPLES = r"""
- name: Tune, by the agent
  nearmetal.ec2.tune:
    workload: in_memory_database
"""

RETURN = r"""
answered:
  description: Only V(false), when there was no agent to run; otherwise the result is that of the task's module.
  type: bool
  returned: when there was no agent to run
"""

import base64
import json
import os
import sys
import tempfile
from typing import Optional, Tuple

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.nearmetal.ec2.plugins.module_utils._host import installed

_DESCRIPTORS = "/proc/self/fd"
_Agent = Tuple[int, str]  # an open file, and the path by which it is run


def main() -> None:
    """Run the host's agent, if it is the right one, else the agent that came with the task."""
    module = AnsibleModule(
        argument_spec={
            "agent": {"type": "str", "no_log": True},  # no secret, but half a megabyte
            "mark": {"type": "str"},
            "more": {"type": "dict", "default": {}},
            "task": {"type": "str", "required": True},
            "wanted": {"type": "dict", "required": True},
        },
        supports_check_mode=True,
    )
    agent = _installed(module.params["mark"]) or _sent_along(module)
    if agent is None:
        module.exit_json(changed=False, answered=False)
    descriptor, program = agent
    reader = os.dup(1)
    order = {
        "module": module.params["task"],
        "wanted": module.params["wanted"],
        "check": module.check_mode,
        "more": module.params["more"],
        "reader": reader,
    }
    # -S: the agent uses the standard library alone, and looking for other packages takes a third of Python's start.
    command = [sys.executable, "-I", "-S", program, "task"]
    status, answer, complaint = module.run_command(command, data=json.dumps(order), pass_fds=[descriptor, reader])
    if status:
        module.fail_json(msg=f"the agent ended with status {status}: {complaint.strip()[-300:] or 'it said nothing'}")
    result = {"invocation": {"module_args": module.params["wanted"]}, **json.loads(answer)}
    if result.get("failed"):
        module.fail_json(**result)
    module.exit_json(**result)


def _installed(mark: Optional[str]) -> Optional[_Agent]:
    """The host's own agent, if it has this mark."""
    descriptor = installed.opened(mark) if mark and os.path.exists(_DESCRIPTORS) else None
    # The checked file stays open until the end, as another run may replace it meanwhile.
    return None if descriptor is None else (descriptor, f"{_DESCRIPTORS}/{descriptor}")


def _sent_along(module: AnsibleModule) -> Optional[_Agent]:
    """The agent that came with the task, in memory where the host has files there; None: none came.

    In memory, because an audit writes nothing on the host's disks.
    """
    if not module.params["agent"]:
        return None
    try:
        os.stat(_DESCRIPTORS)
        descriptor = os.memfd_create("nearmetal")
        path = f"{_DESCRIPTORS}/{descriptor}"
    except (AttributeError, OSError):  # Linux 3.17 and glibc 2.27 have it, and not every container may use it
        descriptor, path = tempfile.mkstemp(dir=module.tmpdir)  # Ansible removes the folder
    with open(descriptor, "wb", closefd=False) as stream:
        stream.write(base64.b64decode(module.params["agent"]))
    return descriptor, path


if __name__ == "__main__":
    main()
