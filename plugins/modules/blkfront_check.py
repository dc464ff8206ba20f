#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say whether the Xen block devices of a host use persistent grants."""

from __future__ import annotations

DOCUMENTATION = r"""
module: blkfront_check
short_description: Look at the Xen block front end of a Linux host on EC2
version_added: 0.1.0
description:
  - Says per disk whether persistent grants and indirect descriptors are in use, from the kernel log,
    and what the driver's parameters are.
  - Changes nothing. Whether grants persist is decided by the back end, which is Amazon's. That they are off is a
    finding with the status V(advice), never a failure.
  - On Nitro and metal, whose disks are NVMe, it is V(not_applicable).
options:
  allow_not_ec2:
    description:
      - Look at a host that doesn't look like EC2, too.
    type: bool
    default: false
  owner_conflict:
    description: As in the other modules of the action group. Nobody owns what is only looked at.
    type: str
    choices: [refuse, take_over]
    default: refuse
  instance_type:
    description: As in the other modules of the action group.
    type: str
  strict:
    description: As in the other modules of the action group. Nothing is refused where nothing is changed.
    type: bool
    default: false
notes:
  - The kernel log is readable by root alone where C(kernel.dmesg_restrict) is 1. Without it the finding is V(unknown).
  - The log forgets its oldest lines. Then C(/var/log/dmesg) is read, where the distribution keeps it.
extends_documentation_fragment:
  - nearmetal.ec2.attributes.check
  - nearmetal.ec2.attributes.actiongroup_tuning
author:
  - The nearmetal.ec2 authors (@nearmetal)
"""

EXAMPLES = r"""
- name: Do this host's disks use persistent grants?
  nearmetal.ec2.blkfront_check:
  become: true
  register: blkfront_check_result

- name: Show what to know
  ansible.builtin.debug:
    msg: "{{ blkfront_check_result.findings | selectattr('status', 'eq', 'advice') | map(attribute='reason') }}"
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

from ansible_collections.nearmetal.ec2.plugins.module_utils._ansible.module import check_module
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.blkfront_check import CONCERN
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host


def main(host: Host | None = None) -> None:
    """Look at `host`, by default this machine."""
    check_module(CONCERN, host)


if __name__ == "__main__":
    main()
