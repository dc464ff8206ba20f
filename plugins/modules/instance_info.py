#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What EC2 instances are, and what AWS is about to do to them."""

from __future__ import annotations

DOCUMENTATION = r"""
module: instance_info
short_description: Say what EC2 instances are and what AWS has scheduled for them
version_added: 0.1.0
description:
  - Type, generation, virtualization, ENA and SR-IOV attributes, CPU options, placement, tenancy, network interfaces
    with their queues, boot mode, scheduled events and spot notices of many instances in a handful of calls.
  - The hypervisor follows from the type, because C(DescribeInstances) calls Nitro C(xen).
  - A scheduled event or a spot notice is a finding, and every module of this collection that could change
    the instance refuses to.
extends_documentation_fragment:
  - nearmetal.ec2.aws
  - nearmetal.ec2.aws.instances
  - nearmetal.ec2.aws.info
author:
  - The nearmetal.ec2 authors (@nearmetal)
"""

EXAMPLES = r"""
- name: Look at all instances of the play at once
  nearmetal.ec2.instance_info:
    instance_ids: "{{ ansible_play_hosts_all | map('extract', hostvars, 'instance_id') | list }}"
    regions: [eu-west-1]
  delegate_to: localhost
  run_once: true
  register: cloud

- name: Look at a workload in two accounts
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
  description: One line, how many instances and findings.
  type: str
  returned: always
  sample: "instance_info: 2 instances: 1 advice, 3 ok"
findings:
  description: All findings, as RV(nearmetal.ec2.tune#module:findings) describes them. C(where) is the instance.
  type: list
  elements: dict
  returned: success
instances:
  description:
    - Instance id → C(facts), C(type) (as RV(nearmetal.ec2.instance_type_info#module:instance_types)), C(findings).
    - C(facts.host_class) is V(xen_pv), V(xen_hvm), V(nitro), V(metal) or V(unknown).
    - C(facts.events) and C(facts.spot_notice) are what AWS has scheduled; C(facts.unasked) says why it is not known.
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
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.instance_info import answer
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.result import leave


def main() -> None:
    """Ask and answer."""
    module = AnsibleModule(argument_spec=instance_options(), supports_check_mode=True, **INSTANCES)
    leave(module, lambda: answer(module.params))


if __name__ == "__main__":
    main()
