#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tune a host by the agent that it has."""

from __future__ import annotations

DOCUMENTATION = r"""
module: tune_by_agent
short_description: Tune a host with the agent that is installed on it
version_added: 0.1.0
description:
  - The task of P(nearmetal.ec2.tune#module) runs this module first. Write P(nearmetal.ec2.tune#module) in a playbook.
  - If the host has the agent of exactly this collection, and only root can change it, the module runs the agent with
    the options of P(nearmetal.ec2.tune#module) and returns its result. So the same code isn't sent and compiled again.
  - Otherwise the module runs the agent that the task sends along in check mode. Without that it does nothing and says
    so.
options:
  agent:
    description: The agent to run where the host has none, in base64. It runs from memory.
    type: str
  drawn:
    description: Whether a report has a picture of the host, for which the agent also observes its disks.
    type: bool
    default: false
  mark:
    description: Version and digest of the agent that may run, as the agent itself begins.
    type: str
    required: true
  wanted:
    description: The options of P(nearmetal.ec2.tune#module).
    type: dict
    required: true
extends_documentation_fragment:
  - nearmetal.ec2.attributes
author:
  - The nearmetal.ec2 authors (@nearmetal)
"""

EXAMPLES = r"""
- name: Tune, by the agent where there is one
  nearmetal.ec2.tune:
    workload: in_memory_database
"""

RETURN = r"""
answered:
  description: Only V(false), when no agent could answer; otherwise the result is that of P(nearmetal.ec2.tune#module).
  type: bool
  returned: when no agent could answer
"""

import base64
import json
import os
import sys
from typing import Optional

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.nearmetal.ec2.plugins.module_utils._host import installed


def main() -> None:
    """Run the host's agent, if it is the right one."""
    module = AnsibleModule(
        argument_spec={
            "agent": {"type": "str", "no_log": True},  # no secret, but half a megabyte
            "drawn": {"type": "bool", "default": False},
            "mark": {"type": "str", "required": True},
            "wanted": {"type": "dict", "required": True},
        },
        supports_check_mode=True,
    )
    own = installed.opened(module.params["mark"])
    agent = _sent_along(module) if own is None else own
    if agent is None:
        module.exit_json(changed=False, answered=False)
    # The checked file stays open until the end, as another run may replace it meanwhile.
    program = f"/proc/self/fd/{agent}"
    if not os.path.exists(program):
        module.exit_json(changed=False, answered=False)
    order = {
        "options": module.params["wanted"],
        "check": module.check_mode,
        "installed": own is not None,
        "drawn": module.params["drawn"],
    }
    # -S: the agent uses the standard library alone, and looking for other packages takes a third of Python's start.
    command = [sys.executable, "-I", "-S", program, "tune"]
    status, answer, complaint = module.run_command(command, data=json.dumps(order), pass_fds=[agent])
    if status == installed.UNSUITED:
        module.exit_json(changed=False, answered=False)
    if status:
        module.fail_json(msg=f"the agent ended with status {status}: {complaint.strip()[-300:] or 'it said nothing'}")
    result = json.loads(answer)
    if result.get("failed"):
        module.fail_json(**result)
    module.exit_json(**result)


def _sent_along(module: AnsibleModule) -> Optional[int]:
    """A descriptor of the agent that came with the task; None: none came, or this host has no files in memory.

    In memory, because an audit writes nothing on the host's disks.
    """
    if not module.params["agent"] or not hasattr(os, "memfd_create"):
        return None
    try:
        descriptor = os.memfd_create("nearmetal")
    except OSError:  # Linux 3.17 has it, and not every container may use it
        return None
    with open(descriptor, "wb", closefd=False) as stream:
        stream.write(base64.b64decode(module.params["agent"]))
    return descriptor


if __name__ == "__main__":
    main()
