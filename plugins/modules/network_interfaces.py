#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Network interfaces of EC2 instances and their queues."""

from __future__ import annotations

DOCUMENTATION = r"""
module: network_interfaces
short_description: Say whether EC2 instances have network queues for their CPUs
version_added: 0.1.0
description:
  - Receive queues of all interfaces against the CPUs. Where they are too few, how to get more. By C(EnaQueueCount) on
    types with flexible ENA queues, by more interfaces, or by software on the host.
  - Network cards left unused, ENA Express, and types whose security groups forget idle flows after minutes.
  - Only reads. To attach an interface needs subnets, addresses and routes that you choose.
extends_documentation_fragment:
  - nearmetal.ec2.aws
  - nearmetal.ec2.aws.instances
  - nearmetal.ec2.aws.info
author:
  - The nearmetal.ec2 authors (@nearmetal)
"""

EXAMPLES = r"""
- name: Which instances have too few queues
  nearmetal.ec2.network_interfaces:
    filters:
      tag:workload: packet_appliance
    regions: [eu-west-1]
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
msg:
  description: One line, how many instances and findings.
  type: str
  returned: always
  sample: "network_interfaces: 2 instances: 1 advice, 5 ok"
findings:
  description: All findings, as RV(nearmetal.ec2.tune#module:findings) describes them. C(where) is the instance.
  type: list
  elements: dict
  returned: success
instances:
  description:
    - Instance id → C(interfaces) and C(findings). An interface has C(interface_id), C(device_index), C(card), C(kind),
      C(queues) (null when the default holds), C(srd), C(srd_udp) and C(source_dest_check).
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
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.network_interfaces import answer
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.result import leave


def main() -> None:
    """Look and say."""
    module = AnsibleModule(argument_spec=instance_options(), supports_check_mode=True, **INSTANCES)
    leave(module, lambda: answer(module.params))


if __name__ == "__main__":
    main()
