#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: enhanced_networking
short_description: Check enhanced networking of EC2 instances, and turn it on
version_added: 0.1.0
description:
  - Compares, for each instance, what the type can do, which attribute is set, and which driver runs on the host. A set
    attribute doesn't mean that the driver is in use.
  - With O(ena=enabled) or O(sriov=enabled) it sets the attribute. That needs a stopped instance, so a running one is
    stopped and started again, but only with O(allow_stop=true).
  - Refuses paravirtual instances, images without the driver, spot instances, instances with a scheduled event, roots on
    instance store, hibernated instances, members of an Auto Scaling group, and instances that EMR or another service
    manages. Each refusal is a finding that says what to do.
  - Enabling SR-IOV can't be undone. AWS has no way to unset C(sriovNetSupport).
options:
  ena:
    description:
      - V(enabled) sets the attribute C(enaSupport) where the type offers ENA.
      - If this option is left out, the attribute is only reported.
    type: str
    choices: [enabled]
  sriov:
    description:
      - V(enabled) sets C(sriovNetSupport) where the type has ixgbevf's virtual function, which can't be undone.
      - If this option is left out, the attribute is only reported.
    type: str
    choices: [enabled]
  allow_stop:
    description:
      - Allow a running instance to be stopped and started; also starts what an earlier run stopped and could not start.
      - The instance may come back on other hardware and with another public address. The start is tried until
        O(stop_timeout), whatever AWS answers.
      - Its tag C(nearmetal:start-again) records that it ran. The tag is written before the stop and removed after the
        start. Without the permission to write it nothing is stopped.
      - An instance that somebody else has stopped since is not started.
    type: bool
    default: false
  instance_store_loss:
    description:
      - Instances that may lose their data on instance store when they are stopped.
      - Other instances with instance store are refused.
    type: list
    elements: str
    default: []
  stop_at_once:
    description:
      - How many instances may be stopped at the same time.
      - After a failure no other instance is stopped.
    type: int
    default: 1
  stop_timeout:
    description: Seconds that stopping, changing and starting an instance may take.
    type: int
    default: 600
  hosts:
    description:
      - What the hosts report of their drivers.
      - If you leave it out, it is what M(nearmetal.ec2.instance_facts) found on the hosts of the play, without hosts
        that claim an instance which the inventory gives to another host. Then no instance is changed that the inventory
        doesn't give to exactly one host of the play.
      - An attribute of an instance that isn't listed is never set, because an image without the driver would be
        unreachable. An instance that is listed twice isn't changed.
    type: list
    elements: dict
    default: []
    suboptions:
      instance_id:
        description: The instance.
        type: str
        required: true
      drivers_in_use:
        description: The drivers of its Ethernet interfaces, such as V(ena), V(ixgbevf) or V(vif).
        type: list
        elements: str
      drivers_available:
        description: The drivers among V(ena) and V(ixgbevf) that its image has, loaded or not.
        type: list
        elements: str
extends_documentation_fragment:
  - nearmetal.ec2.aws
  - nearmetal.ec2.aws.instances
  - nearmetal.ec2.aws.changes
author:
  - The nearmetal.ec2 authors (@nearmetal)
"""

EXAMPLES = r"""
- name: Find instances that run without enhanced networking
  nearmetal.ec2.enhanced_networking:
    filters:
      tag:workload: cache
    regions: [eu-west-1]
  delegate_to: localhost
  run_once: true

- name: Turn ENA on, one instance after the other
  nearmetal.ec2.enhanced_networking:
    instance_ids: [i-0123456789abcdef0]
    regions: [eu-west-1]
    ena: enabled
    allow_stop: true
    hosts:
      - instance_id: i-0123456789abcdef0
        drivers_in_use: [vif]
        drivers_available: [ena, ixgbevf]
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
msg:
  description: One line, the number of instances and findings.
  type: str
  returned: always
  sample: "enhanced_networking: 2 instances: 1 advice, 5 ok"
instances:
  description:
    - Instance id → C(facts) (C(ena_support), C(sriov_net_support)), C(host_class), C(actions), C(findings).
  type: dict
  returned: success
left_stopped:
  description:
    - Instances that ran before this run or an earlier one stopped them, and are not known to run now. The reasons are
      in RV(failed_instances) and C(findings). Another run with O(allow_stop=true) starts them.
  type: list
  elements: str
  returned: success
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
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.argspec import INSTANCES, MANY, changing_options
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.enhanced_networking import answer, forecast

_STRINGS: dict[str, Any] = {"type": "list", "elements": "str"}
_HOST: dict[str, Any] = {
    "instance_id": {"type": "str", "required": True},
    "drivers_in_use": _STRINGS,
    "drivers_available": _STRINGS,
}
_OPTIONS: dict[str, Any] = {
    "ena": {"type": "str", "choices": ["enabled"]},
    "sriov": {"type": "str", "choices": ["enabled"]},
    "allow_stop": {"type": "bool", "default": False},
    "instance_store_loss": {**MANY, "default": []},
    "stop_at_once": {"type": "int", "default": 1},
    "stop_timeout": {"type": "int", "default": 600},
    "hosts": {**MANY, "elements": "dict", "default": [], "options": _HOST},
}

main = controller_main("enhanced_networking", {**changing_options(), **_OPTIONS}, answer, forecast, **INSTANCES)

if __name__ == "__main__":
    main()
