#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: instance_info
short_description: Describe EC2 instances and what AWS has scheduled for them
version_added: 0.1.0
description:
  - Returns type, generation, virtualization, ENA and SR-IOV attributes, CPU options, placement, tenancy, network
    interfaces with their queues, boot mode, scheduled events and spot notices of many instances in a handful of calls.
  - Derives the hypervisor from the type, because C(DescribeInstances) calls Nitro C(xen).
  - A scheduled event or a spot notice is a finding, and no module of this collection changes such an instance.
extends_documentation_fragment:
  - nearmetal.ec2.aws
  - nearmetal.ec2.aws.instances
  - nearmetal.ec2.aws.info
author:
  - The nearmetal.ec2 authors (@nearmetal)
"""

EXAMPLES = r"""
- name: Describe all instances of the play at once
  nearmetal.ec2.instance_info:
    instance_ids: "{{ ansible_play_hosts_all | map('extract', hostvars, 'instance_id') | list }}"
    regions: [eu-west-1]
  delegate_to: localhost
  run_once: true
  register: cloud

- name: Describe a workload in two accounts
  nearmetal.ec2.instance_info:
    filters:
      tag:workload: cache
    regions: [eu-west-1, us-east-1]
    assume_roles:
      production: arn:aws:iam::123456789012:role/nearmetal-audit
      staging:
        role_arn: arn:aws:iam::210987654321:role/nearmetal-audit
        external_id: example
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
msg:
  description: One line, the number of instances and findings.
  type: str
  returned: always
  sample: "instance_info: 2 instances: 1 advice, 3 ok"
instances:
  description:
    - Instance id → C(facts), C(type) (as RV(nearmetal.ec2.instance_type_info#module:instance_types)), C(findings).
    - C(facts.host_class) is V(xen_pv), V(xen_hvm), V(nitro), V(metal) or V(unknown).
    - C(facts.events) and C(facts.spot_notice) are what AWS has scheduled; C(facts.unasked) says why that is not known.
  type: dict
  returned: success
findings:
  description:
    - All findings, as RV(nearmetal.ec2.tune#module:findings) describes them. C(where) is the instance, or one of its
      volumes.
  type: list
  elements: dict
  returned: success
failed_instances:
  description: Instance id → what could not be read or changed. The others are complete.
  type: dict
  returned: success
errors:
  description: Accounts and regions that could not be asked, one sentence each.
  type: list
  elements: str
  returned: success
types_from:
  description: V(api), or V(table) when C(DescribeInstanceTypes) was not allowed and the offline table was used.
  type: str
  returned: success
actions:
  description:
    - The changes, as RV(nearmetal.ec2.tune#module:actions) describes them. C(where) is the instance.
    - Empty for a module that only looks.
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

from ansible_collections.nearmetal.ec2.plugins.module_utils._ansible.edge import controller_main
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.argspec import INSTANCES, instance_options
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.instance_info import answer

main = controller_main("instance_info", instance_options(), answer, **INSTANCES)

if __name__ == "__main__":
    main()
