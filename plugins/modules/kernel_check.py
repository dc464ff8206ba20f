#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say what no tuning makes good: kernel, distribution, drivers, virtualization, stolen time."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kernel_check
short_description: Check kernel, distribution and drivers of a Linux host on EC2
version_added: 0.1.0
description:
  - Reads and changes nothing. Each check is a finding, C(ok) or C(advice) with the reason.
  - Kernel and distribution against a minimum and the end of public support, Xen PV with what HVM was
    measured to bring, the NICs' driver against what the type offers, the ENA driver against what
    the type's generation needs, and CPU time that others took.
  - With O(workload) the instance type too. Where it is wrong for that workload, the finding names one that would do.
options:
  minimum_kernel:
    description: The oldest kernel version that is fine, in quotes, because YAML reads 5.10 as the number 5.1.
    type: raw
    default: "3.10"
  maximum_steal_percent:
    description: How much CPU time since boot others may have taken.
    type: int
    default: 1
  workload:
    description:
      - What the host is for, among the workloads that some instance types are wrong for.
        Where the type isn't known, nothing is said of it.
    type: list
    elements: str
    choices: [hpc, low_latency, sap_hana]
    default: []
extends_documentation_fragment:
  - nearmetal.ec2.state
  - nearmetal.ec2.state.notes
  - nearmetal.ec2.attributes
  - nearmetal.ec2.attributes.actiongroup_tuning
author:
  - The nearmetal.ec2 authors (@nearmetal)
"""

EXAMPLES = r"""
- name: Check the host
  nearmetal.ec2.kernel_check:
  register: checked

- name: Check a Xen host, whose type the inventory plugin amazon.aws.aws_ec2 knows
  nearmetal.ec2.kernel_check:
    instance_type: "{{ instance_type | default('') }}"

- name: Check whether the instance type is right for SAP HANA
  nearmetal.ec2.kernel_check:
    workload: [sap_hana]

- name: Show what isn't fine
  ansible.builtin.debug:
    msg: "{{ checked.findings | selectattr('status', 'eq', 'advice') | map(attribute='reason') }}"
"""

RETURN = r"""
# The result contract: written by dev/contract.py.
msg:
  description: One line, what was done or would be done.
  type: str
  returned: always
  sample: "clocksource: hpet → tsc, persisted, no reboot"
actions:
  description: The changes of this run, in their order; in check mode those an apply would make.
  type: list
  elements: dict
  returned: unless planning failed
  contains:
    concern: {description: The concern that asked for it., type: str}
    knob: {description: The option that asked for it., type: str}
    what: {description: "What is changed, in the vocabulary of the facts.", type: str, sample: clock.current}
    where: {description: "The place, a stable identity such as CPU or device and queue; may be empty.", type: str}
    before: {description: The value found; null when absent., type: raw}
    after: {description: The value set; null when removed., type: raw}
    scope: {description: "V(runtime) holds until the next boot, V(boot) from the next boot on.", type: str}
    disruptive: {description: Whether traffic or a service notices., type: bool}
    reversible: {description: "V(now), V(by_reboot) or V(no).", type: str}
    wanted_by: {description: "V(user), V(workload), or V(auto) when the value was left to the collection.", type: str}
    reason: {description: Why., type: str}
    reference: {description: What the reason rests on., type: str}
findings:
  description: One statement per knob.
  type: list
  elements: dict
  returned: unless planning failed
  contains:
    concern: {description: The concern., type: str}
    knob: {description: The option., type: str}
    where: {description: The place; empty when there is only one., type: str}
    status:
      description:
        - One of V(ok), V(would_change), V(changed), V(needs_reboot), V(needs_restart), V(not_applicable), V(refused),
          V(unchangeable), V(unknown), V(advice), V(waived).
      type: str
    now: {description: The value found., type: raw}
    wanted: {description: The value wanted., type: raw}
    reason: {description: Why., type: str}
    reference: {description: What the reason rests on., type: str}
    gain: {description: "What it brings, with the source of the figure; empty when not known.", type: str}
    owner:
      description: "Who sets it today: V(nearmetal.ec2), V(tuned), V(kubelet) or a file; empty when nobody is known."
      type: str
errors:
  description: Concern → what went wrong; such a concern was taken back as a whole.
  type: dict
  returned: unless planning failed
reboot_required:
  description: Whether something is set that only the next boot brings.
  type: bool
  returned: unless planning failed
reboot_reasons:
  description: What the reboot would bring.
  type: list
  elements: str
  returned: unless planning failed
platform:
  description: What kind of host it is, as in RV(nearmetal.ec2.host_facts#module:ansible_facts.nearmetal.platform).
  type: dict
  returned: unless planning failed
# End of the contract.
"""

from ansible_collections.nearmetal.ec2.plugins.module_utils._ansible.module import state_module
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.kernel_check import CONCERN
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost


def main(host: WritableHost | None = None) -> None:
    """Plan and do the concern on `host`, by default this machine."""
    state_module(CONCERN, host)


if __name__ == "__main__":
    main()
