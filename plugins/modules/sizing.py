#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: sizing
short_description: Calculate which EC2 instance types would do, and what of a bigger one would be used
version_added: 0.1.0
description:
  - Compares what a workload needs with the limits of instance types, and shows the arithmetic as lines that you can
    redo.
  - Says whether a bigger size, metal, faster EBS volumes or a second network interface would be used at all, how many
    instances a Dedicated Host has room for at most, and what a million units of measured work cost.
  - Without O(instance_ids), O(filters) and O(ask_prices) it reads only the table of this collection, and needs neither
    boto3 nor a network. The filter P(nearmetal.ec2.sizing#filter) calculates the same.
  - Counts vCPUs, not how fast they are. Only a measurement on a type tells what it does.
options:
  need:
    description:
      - What the workload needs of one instance at its peak. What is left out is not compared.
      - Values given here win over those of CloudWatch, which knows nothing of memory.
    type: dict
    suboptions:
      vcpus:
        description: Busy vCPUs.
        type: float
      memory_gib:
        description: Memory in GiB.
        type: float
      network_gbps:
        description: Network in Gbit/s, the busier direction.
        type: float
      ebs_iops:
        description: Operations per second of all EBS volumes together. AWS's limits are for operations of 16 KiB.
        type: float
      ebs_mb_s:
        description: MB/s of all EBS volumes together.
        type: float
      instance_store_gb:
        description: Instance store in GB.
        type: float
      interfaces:
        description: Network interfaces.
        type: float
  instance_type:
    description: The type in use, if no instance is asked. Without it, nothing is said about a bigger size and the like.
    type: str
  instance_types:
    description:
      - The types to choose from, as names or patterns such as V(c7i.*).
      - If this option is left out, all types of the present generation with the architecture of the type in use,
        without those that have accelerators or are made for macOS or HPC.
    type: list
    elements: str
  volumes:
    description: The EBS volumes of O(instance_type). Those of instances that are asked are looked up.
    type: list
    elements: dict
    suboptions:
      iops:
        description: The volume's operations per second.
        type: float
        required: true
      mb_s:
        description: The volume's MB/s.
        type: float
        required: true
  prices:
    description: Prices per hour by type, in any one currency. They can be those of your Savings Plan.
    type: dict
  ask_prices:
    description:
      - Also ask AWS's Price List API for prices in US dollars, of Linux on demand with shared tenancy.
      - It asks for the type in use, the types of O(work), and those that are proposed by their size. O(prices) wins.
    type: bool
    default: false
  work:
    description:
      - Measured work per second by type, such as the result of M(nearmetal.ec2.benchmark) or M(nearmetal.ec2.prove).
      - The price of work is calculated only for types that are measured here.
    type: dict
  work_unit:
    description: What O(work) counts, such as V(transactions).
    type: str
    default: units
  work_wanted:
    description: The work per second that all instances together have to do.
    type: float
  sustained:
    description:
      - Compare with what a type can do all day. V(false) compares with its bursts.
      - The share of a burstable type's vCPUs is its baseline. That of a flex type is not known.
    type: bool
    default: true
  headroom_percent:
    description: The share of each limit that has to stay free.
    type: float
    default: 0
  most:
    description: How many types to propose, one per family.
    type: int
    default: 5
  metrics:
    description:
      - Also ask CloudWatch for CPU, network and EBS of the last O(hours), for which AWS charges by the metric.
      - The need is the highest value of 5 minutes. Shorter peaks are higher, which O(headroom_percent) is for.
    type: bool
    default: false
  hours:
    description: How many hours of CloudWatch's values to ask for, up to 1512.
    type: int
    default: 24
extends_documentation_fragment:
  - nearmetal.ec2.aws
  - nearmetal.ec2.aws.instances
  - nearmetal.ec2.aws.info
seealso:
  - plugin: nearmetal.ec2.sizing
    plugin_type: filter
  - module: nearmetal.ec2.instance_type_info
author:
  - The nearmetal.ec2 authors (@nearmetal)
"""

EXAMPLES = r"""
- name: Calculate which types would do, and what a million transactions would cost
  nearmetal.ec2.sizing:
    instance_type: c5.9xlarge
    need:
      vcpus: 14
      memory_gib: 54
    prices:
      c5.9xlarge: 1.53
    work:
      c5.9xlarge: 400000
    work_unit: transactions
  delegate_to: localhost
  run_once: true

- name: Find instances that are larger than their load of the last week needs
  nearmetal.ec2.sizing:
    filters:
      tag:workload: cache
    regions: [eu-west-1]
    metrics: true
    hours: 168
    headroom_percent: 20
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
msg:
  description: One line, the proposed types, or the number of instances and findings.
  type: str
  returned: always
  sample: "sizing: 12 of 792 types would do: c7i.4xlarge, m7i.4xlarge"
sizing:
  description:
    - The calculation, if no instance was asked. C(proposed) are types that would do, with C(percent) of each limit that
      is used, C(price_per_hour) and C(per_host). C(sufficient) of C(candidates) types would do, and of the C(unknown)
      ones a limit is missing. C(today) is the type in use.
    - C(uses) has C(used) and a C(line) for C(bigger_size), C(metal), C(second_interface), C(network_class),
      C(more_iops) and C(more_throughput). C(used) is null where only a measurement can say.
    - C(costs) has C(per_million) units and C(instances) for each type of O(work). C(arithmetic) has all lines of the
      calculation.
  type: dict
  returned: when no instance was asked
instances:
  description: Instance id → C(actions) (always empty), C(findings), and C(sizing) as RV(sizing) describes it.
  type: dict
  returned: when instances were asked
# Generated by `make generate` from dev/generate/returns/instances.yml
failed_instances:
  description:
    - Instance id → what could not be read or changed. The others are complete.
    - Beside it the module returns C(findings), C(errors), C(types_from), C(actions), C(reboot_required) and
      C(reboot_reasons), as M(nearmetal.ec2.instance_info) describes them.
  type: dict
  returned: success
# End of the generated part
"""

from typing import Any

from ansible_collections.nearmetal.ec2.plugins.module_utils._ansible.edge import controller_main
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.argspec import instance_options
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.sizing.instances import module_answer

_NEED = ("vcpus", "memory_gib", "network_gbps", "ebs_iops", "ebs_mb_s", "instance_store_gb", "interfaces")
_OPTIONS: dict[str, Any] = {
    "need": {"type": "dict", "options": {name: {"type": "float"} for name in _NEED}},
    "instance_type": {"type": "str"},
    "instance_types": {"type": "list", "elements": "str"},
    "volumes": {
        "type": "list",
        "elements": "dict",
        "options": {name: {"type": "float", "required": True} for name in ("iops", "mb_s")},
    },
    "prices": {"type": "dict"},
    "ask_prices": {"type": "bool", "default": False},
    "work": {"type": "dict"},
    "work_unit": {"type": "str", "default": "units"},
    "work_wanted": {"type": "float"},
    "sustained": {"type": "bool", "default": True},
    "headroom_percent": {"type": "float", "default": 0},
    "most": {"type": "int", "default": 5},
    "metrics": {"type": "bool", "default": False},
    "hours": {"type": "int", "default": 24},
}
_INSTEAD = ("instance_ids", "filters")

main = controller_main(
    "sizing",
    {**instance_options(), **_OPTIONS},
    module_answer,
    mutually_exclusive=[_INSTEAD, *((option, other) for option in ("instance_type", "volumes") for other in _INSTEAD)],
)

if __name__ == "__main__":
    main()
