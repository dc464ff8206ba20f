#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: instance_facts
short_description: Observe what the cloud roles need to know of an EC2 host
version_added: 0.1.0
description:
  - Returns instance id, type, region, zone, placement, network interfaces, scheduled events and spot notice of the host
    that it runs on, by IMDSv2. For what only the API knows, see M(nearmetal.ec2.instance_info).
  - Returns which network drivers the host uses, and whether its image has the drivers of enhanced networking.
  - Asks the metadata service only where firmware or hypervisor indicate EC2, without any proxy, for one second in all.
    The token is stored nowhere, and user data and credentials are never read.
notes:
  - Writes nothing and needs no privileges.
  - In a container the metadata service answers only if the instance's hop limit is above 1.
extends_documentation_fragment:
  - nearmetal.ec2.attributes.check
  - nearmetal.ec2.attributes.facts
seealso:
  - module: nearmetal.ec2.host_facts
author:
  - The nearmetal.ec2 authors (@nearmetal)
"""

EXAMPLES = r"""
- name: Ask the instance
  nearmetal.ec2.instance_facts:

- name: Leave an instance alone that AWS is about to take
  ansible.builtin.meta: end_host
  when: ansible_facts.nearmetal.instance.spot_notice or ansible_facts.nearmetal.instance.events
"""

RETURN = r"""
ansible_facts:
  description: The facts, below one name.
  returned: always
  type: dict
  contains:
    nearmetal:
      description: Everything nearmetal.ec2 observes.
      type: dict
      contains:
        instance:
          description: What the metadata service answered. A value is null when the answer lacked it.
          type: dict
          contains:
            status:
              description: V(ok), V(not_ec2) (not asked), V(off) or V(no_answer).
              type: str
              sample: ok
            reason:
              description: What to do about a status that is not V(ok), or what a slow service left out.
              type: str
              sample: ""
            instance_id: {description: The instance's id., returned: always, type: str, sample: i-0123456789abcdef0}
            instance_type: {description: Its type., returned: always, type: str, sample: c6in.32xlarge}
            account: {description: The number of its account., returned: always, type: str, sample: "123456789012"}
            region: {description: Its region., returned: always, type: str, sample: eu-west-1}
            availability_zone: {description: Its zone., returned: always, type: str, sample: eu-west-1b}
            architecture: {description: As EC2 names it., returned: always, type: str, sample: x86_64}
            image_id: {description: The image it was launched from., returned: always, type: str, sample: ami-0abc}
            kernel_id: {description: The kernel image of a PV instance., returned: always, type: str, sample: null}
            lifecycle: {description: "V(on-demand), V(spot), V(scheduled).", returned: always, type: str, sample: spot}
            placement_group: {description: Its placement group., returned: always, type: str, sample: together}
            partition: {description: Its partition in the group., returned: always, type: int, sample: 3}
            workload:
              description: Its tag C(workload), where tags are allowed in metadata.
              type: str
              sample: cache
            interfaces:
              description: Its network interfaces, with C(interface_id), C(device_number) and C(card).
              type: list
              elements: dict
            events:
              description: The events that AWS has scheduled for the instance and not finished yet.
              type: list
              elements: str
              sample: []
            spot_notice:
              description: What AWS is about to do to a spot instance, and when. Null if nothing is announced.
              type: str
              sample: null
        drivers:
          description: Network drivers.
          type: dict
          contains:
            in_use:
              description: The drivers of the interfaces with hardware behind them. V(vif) is Xen's split driver.
              type: list
              elements: str
              sample: [ena]
            available:
              description: Which of V(ena) and V(ixgbevf) the running kernel has. Null when that can't be seen.
              type: list
              elements: str
              sample: [ena, ixgbevf]
        ebs:
          description: EBS volumes on NVMe. Reading their counters needs root.
          type: dict
          contains:
            exceeded:
              description:
                - Per device the microseconds since it was attached in which a limit held its I/O back, as
                  O(nearmetal.ec2.ebs#module:hosts[].exceeded) takes them.
              type: list
              elements: dict
              sample: []
"""

from ansible_collections.nearmetal.ec2.plugins.module_utils._ansible.module import main_of

main = main_of("instance_facts")

if __name__ == "__main__":
    main()
