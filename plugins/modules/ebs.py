#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""EBS volumes against their instance: which of the two is the limit."""

from __future__ import annotations

DOCUMENTATION = r"""
module: ebs
short_description: Say whether EBS volumes or their instance are the limit
version_added: 0.1.0
description:
  - Adds up what the volumes of an instance can do and compares it with what the type can do for long and in bursts, in
    IOPS and in MB/s. The smaller one is the limit, and near it latency rises steeply.
  - Names IOPS and MB/s that are paid for and can never be used, and EBS-optimised turned off where it is optional.
  - Only reads. To change a volume costs money and to resize an instance needs a stop.
options:
  metrics:
    description:
      - Also ask CloudWatch for the burst balances of volumes and instances in the last hour. AWS charges for this by
        the metric.
    type: bool
    default: false
  hosts:
    description: What the hosts say of EBS's own counters, where they can be read.
    type: list
    elements: dict
    default: []
    suboptions:
      instance_id:
        description: The instance.
        type: str
        required: true
      exceeded:
        description: Microseconds per device in which I/O was held back by a limit, since the device was attached.
        type: list
        elements: dict
        suboptions:
          device:
            description: Its name on the host, such as C(nvme1n1).
            type: str
            required: true
          volume_iops_us:
            description: By the volume's limit of IOPS.
            type: int
            required: true
          volume_throughput_us:
            description: By the volume's limit of throughput.
            type: int
            required: true
          instance_iops_us:
            description: By the instance's limit of IOPS.
            type: int
            required: true
          instance_throughput_us:
            description: By the instance's limit of throughput.
            type: int
            required: true
extends_documentation_fragment:
  - nearmetal.ec2.aws
  - nearmetal.ec2.aws.instances
  - nearmetal.ec2.aws.info
author:
  - The nearmetal.ec2 authors (@nearmetal)
"""

EXAMPLES = r"""
- name: Is the instance or are its volumes the limit
  nearmetal.ec2.ebs:
    filters:
      tag:workload: database
    regions: [eu-west-1]
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
msg:
  description: One line, how many instances and findings.
  type: str
  returned: always
  sample: "ebs: 2 instances: 3 advice, 3 ok"
findings:
  description:
    - All findings, as RV(nearmetal.ec2.tune#module:findings) describes them. C(where) is the instance, or the volume
      for a burst balance.
  type: list
  elements: dict
  returned: success
instances:
  description:
    - Instance id → C(volumes) and C(findings). A volume has C(iops) and C(mb_s) (10^6 bytes per second) as it sustains
      them, C(burst_iops), C(burst_mb_s), and C(paid_iops) and C(paid_mb_s), which cost extra.
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

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.argspec import INSTANCES, instance_options
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.ebs import answer
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.result import leave

_MICROSECONDS: dict[str, Any] = {"type": "int", "required": True}
_EXCEEDED: dict[str, Any] = {
    "device": {"type": "str", "required": True},
    "volume_iops_us": _MICROSECONDS,
    "volume_throughput_us": _MICROSECONDS,
    "instance_iops_us": _MICROSECONDS,
    "instance_throughput_us": _MICROSECONDS,
}
_HOST: dict[str, Any] = {
    "instance_id": {"type": "str", "required": True},
    "exceeded": {"type": "list", "elements": "dict", "options": _EXCEEDED},
}
_OPTIONS: dict[str, Any] = {
    "metrics": {"type": "bool", "default": False},
    "hosts": {"type": "list", "elements": "dict", "default": [], "options": _HOST},
}


def main() -> None:
    """Look and say."""
    module = AnsibleModule(argument_spec={**instance_options(), **_OPTIONS}, supports_check_mode=True, **INSTANCES)
    leave(module, lambda: answer(module.params))


if __name__ == "__main__":
    main()
