#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: instance_type_info
short_description: Describe what EC2 instance types offer
version_added: 0.1.0
description:
  - Returns CPUs, memory, hypervisor, network cards and ENA queues, EBS limits and placement strategies of instance
    types.
  - Reads a table in this collection, so it needs no network and no permission. O(source=api) asks AWS instead.
  - The table also has types that the API no longer lists but the collection's sources name.
options:
  instance_types:
    description:
      - Names such as C(c7gn.16xlarge). If this option is left out, every type in the table is returned.
      - A type that is not known is a finding, and only the parts of its name are returned. The others are complete.
    type: list
    elements: str
  source:
    description:
      - V(table) reads the table of the collection, V(api) asks C(DescribeInstanceTypes).
      - RV(table_as_of) is the day of the table. V(api) needs O(instance_types), and uses the table for what the API
        does not know.
    type: str
    choices: [table, api]
    default: table
extends_documentation_fragment:
  - nearmetal.ec2.aws
  - nearmetal.ec2.aws.info
seealso:
  - plugin: nearmetal.ec2.parse_instance_type
    plugin_type: filter
author:
  - The nearmetal.ec2 authors (@nearmetal)
"""

EXAMPLES = r"""
- name: Ask for network queues and EBS limits of two types
  nearmetal.ec2.instance_type_info:
    instance_types: [c6in.32xlarge, i3.metal]
  delegate_to: localhost
  run_once: true
  register: types

- name: Show the limit of EBS
  ansible.builtin.debug:
    msg: "{{ types.instance_types['i3.metal'].ebs_maximum_iops }} IOPS"
"""

RETURN = r"""
msg:
  description: One line, the number of types that were found.
  type: str
  returned: always
  sample: "instance_type_info: 2 of 2 types known"
instance_types:
  description:
    - Type → its facts. A fact that is not known is null. The parts of the name are under C(name), as
      P(nearmetal.ec2.parse_instance_type#filter) gives them.
    - C(source) is V(api), V(table), V(sources) (retired; C(reference) names them), or V(name) when only the
      name is known.
    - C(host_class) is V(nitro), V(xen_hvm) or V(metal).
  type: dict
  returned: success
  sample: {"i4i.metal": {"vcpus": 128, "bare_metal": true, "ebs_maximum_iops": 160000, "source": "table"}}
findings:
  description: One per type that is not known, as RV(nearmetal.ec2.tune#module:findings) describes a finding.
  type: list
  elements: dict
  returned: success
table_as_of:
  description: The day of the offline table.
  type: str
  returned: success
  sample: "2026-11-20"
"""

from typing import Any

from ansible_collections.nearmetal.ec2.plugins.module_utils._ansible.edge import controller_main
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.argspec import aws_options
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.types.info import answer

_OPTIONS: dict[str, Any] = {
    **aws_options(),
    "instance_types": {"type": "list", "elements": "str"},
    "source": {"type": "str", "choices": ["table", "api"], "default": "table"},
}

main = controller_main("instance_type_info", _OPTIONS, answer, required_if=[("source", "api", ["instance_types"])])

if __name__ == "__main__":
    main()
