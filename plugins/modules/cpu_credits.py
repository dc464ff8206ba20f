#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CPU credits of burstable EC2 instances, and their mode."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cpu_credits
short_description: Look at the CPU credits of burstable EC2 instances, and set their mode
version_added: 0.1.0
description:
  - Mode, balance, usage and surplus of T2, T3, T3a and T4g instances, and for how many hours the present rate can go on
    until the instance is slowed down (V(standard)) or costs money (V(unlimited)).
  - With O(specification) it changes the mode, only with O(allow_cost=true). The instance keeps running.
  - Refuses an instance with a scheduled event or a spot notice, and V(unlimited) on a Dedicated Host.
options:
  specification:
    description: The mode wanted. Left out, it is only looked at.
    type: str
    choices: [standard, unlimited]
  allow_cost:
    description:
      - Whether the change of the mode may cost money. V(unlimited) is billed for CPU beyond the credits of 24 hours,
        and a change back to V(standard) charges the surplus spent so far at once.
    type: bool
    default: false
  metrics:
    description:
      - Also ask CloudWatch for balance, usage and surplus of the last hour, in one call per 500 metrics. AWS charges
        for this by the metric.
    type: bool
    default: false
  strict:
    description: Fail, and change nothing, when something is refused.
    type: bool
    default: false
extends_documentation_fragment:
  - nearmetal.ec2.aws
  - nearmetal.ec2.aws.instances
  - nearmetal.ec2.aws.changes
seealso:
  - plugin: nearmetal.ec2.simulate_credits
    plugin_type: filter
author:
  - The nearmetal.ec2 authors (@nearmetal)
"""

EXAMPLES = r"""
- name: Who runs out of credits
  nearmetal.ec2.cpu_credits:
    filters:
      tag:workload: web
    regions: [eu-west-1]
    metrics: true
  delegate_to: localhost
  run_once: true

- name: Slow down instead of paying
  nearmetal.ec2.cpu_credits:
    instance_ids: [i-0123456789abcdef0]
    regions: [eu-west-1]
    specification: standard
    allow_cost: true
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
msg:
  description: One line, how many instances and findings.
  type: str
  returned: always
  sample: "cpu_credits: 2 instances: 1 advice, 3 ok"
actions:
  description: The changes, as RV(nearmetal.ec2.tune#module:actions) describes them. C(where) is the instance.
  type: list
  elements: dict
  returned: success
findings:
  description: All findings, as RV(nearmetal.ec2.tune#module:findings) describes them. C(where) is the instance.
  type: list
  elements: dict
  returned: success
instances:
  description:
    - Instance id → C(actions), C(findings) and, where it is burstable, C(credits) with C(specification), C(balance),
      C(used_per_hour), C(surplus), C(charged) (in the last hour), C(earn_per_hour), C(cap) and C(hours_left).
    - C(hours_left) is null when the present rate can go on for ever.
  type: dict
  returned: success
failed_instances:
  description: Instance id → why it could not be looked at or changed. The others are complete.
  type: dict
  returned: success
errors:
  description: Accounts and regions that could not be asked, one sentence each.
  type: list
  elements: str
  returned: success
types_from:
  description: V(api), or V(table) when C(DescribeInstanceTypes) was not allowed and the offline table served.
  type: str
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

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.argspec import INSTANCES, changing_options
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.cpu_credits import answer
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.result import leave

_OPTIONS: dict[str, Any] = {
    "specification": {"type": "str", "choices": ["standard", "unlimited"]},
    "allow_cost": {"type": "bool", "default": False},
    "metrics": {"type": "bool", "default": False},
    "strict": {"type": "bool", "default": False},
}


def main() -> None:
    """Look, and change what is asked for."""
    module = AnsibleModule(argument_spec={**changing_options(), **_OPTIONS}, supports_check_mode=True, **INSTANCES)
    leave(module, lambda: answer(module.params, module.check_mode))


if __name__ == "__main__":
    main()
