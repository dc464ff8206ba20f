#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hand a host its part of a cloud module's result: the documentation; the work is done by the action plugin."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cloud_findings
short_description: Hand each host its own part of a cloud module's result
version_added: 0.1.0
description:
  - One call of a cloud module serves all hosts of a play. This module gives each host what was found for its instance,
    as if the cloud module had run for that host alone. The cloud roles register its result.
  - The filter P(nearmetal.ec2.instance_ids#filter) determines the instance of a host. A host without an instance gets a
    finding V(unknown).
options:
  concern:
    description: The name of the cloud module, such as V(ebs).
    type: str
    required: true
  result:
    description: The name under which the module's result was registered.
    type: str
    required: true
attributes:
  action:
    description: Runs on the controller as a whole, without a connection to the host.
    support: full
  check_mode:
    description: Changes nothing, so check mode is like any run.
    support: full
  diff_mode:
    description: Shows the difference that the module's result has for the host.
    support: full
  platform:
    description: The systems it works on.
    support: full
    platforms: posix
author:
  - The nearmetal.ec2 authors (@nearmetal)
"""

EXAMPLES = r"""
- name: Compare the volumes of all hosts with their instances
  nearmetal.ec2.ebs:
    instance_ids: "{{ ansible_play_batch | nearmetal.ec2.instance_ids(hostvars) }}"
  delegate_to: localhost
  run_once: true
  register: fleet_ebs

- name: Hand each host its findings
  nearmetal.ec2.cloud_findings:
    concern: ebs
    result: fleet_ebs
  register: ebs_result
"""

RETURN = r"""
msg:
  description: One line, the first finding that is not V(ok).
  type: str
  returned: always
  sample: "ebs: advice: the instance is the limit: 65,000 IOPS, its volumes could do 160,000"
instance_id:
  description: The host's instance; null when it is not known.
  type: str
  returned: success
  sample: i-0123456789abcdef0
actions:
  description: The changes to this instance, as RV(nearmetal.ec2.tune#module:actions) describes them.
  type: list
  elements: dict
  returned: success
findings:
  description: The findings about this instance, as RV(nearmetal.ec2.tune#module:findings) describes them.
  type: list
  elements: dict
  returned: success
reboot_required:
  description: Always false.
  type: bool
  returned: success
reboot_reasons:
  description: Always empty.
  type: list
  elements: str
  returned: success
"""
