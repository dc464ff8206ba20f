#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Placement groups, zones and tenancy of EC2 instances."""

from __future__ import annotations

DOCUMENTATION = r"""
module: placement
short_description: Say whether EC2 instances are placed as their workload needs it
version_added: 0.1.0
description:
  - Placement group and its strategy, spread over availability zones, and tenancy, against what the workload needs and
    what the type allows.
  - A workload whose hosts talk to each other all the time (V(hpc), V(low_latency)) belongs into a cluster group in one
    zone. Any other belongs into more than one zone.
  - Dedicated tenancy was measured without any gain.
  - Only reads. A move needs a stop, and often another launch.
options:
  workload:
    description:
      - The workload of all these instances. Left out, each one's tag C(workload) says it.
      - Of several with commas, as in V(web,hpc), one whose hosts talk to each other all the time decides.
    type: str
extends_documentation_fragment:
  - nearmetal.ec2.aws
  - nearmetal.ec2.aws.instances
  - nearmetal.ec2.aws.info
author:
  - The nearmetal.ec2 authors (@nearmetal)
"""

EXAMPLES = r"""
- name: Are the hosts of the cluster close together
  nearmetal.ec2.placement:
    filters:
      tag:workload: hpc
    regions: [eu-west-1]
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
msg:
  description: One line, how many instances and findings.
  type: str
  returned: always
  sample: "placement: 2 instances: 1 advice, 5 ok"
findings:
  description: All findings, as RV(nearmetal.ec2.tune#module:findings) describes them. C(where) is the instance.
  type: list
  elements: dict
  returned: success
instances:
  description:
    - Instance id → C(placement) (C(group), C(strategy), C(zone), C(tenancy), C(workload), C(possible_strategies)) and
      C(findings).
  type: dict
  returned: success
failed_instances:
  description: Instance id → why it, or something about it, could not be looked at. The others are complete.
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
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.argspec import INSTANCES, instance_options
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.placement import answer
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.result import leave


def main() -> None:
    """Look and say."""
    options = {**instance_options(), "workload": {"type": "str"}}
    module = AnsibleModule(argument_spec=options, supports_check_mode=True, **INSTANCES)
    leave(module, lambda: answer(module.params))


if __name__ == "__main__":
    main()
