#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One or two threads per core, or take the choice back."""

from __future__ import annotations

DOCUMENTATION = r"""
module: smt
short_description: Run one or two threads per core on a Linux host on EC2
version_added: 0.1.0
description:
  - Switches the second thread of every core off or on while the host runs, keeps it over reboots, and takes it back.
  - Uses the kernel's own C(smt/control). A kernel older than 4.19 has none. There, all CPUs but the first of each
    C(thread_siblings_list) are taken offline.
  - Says so where a vCPU is a core of its own, as on Graviton and on AMD from the 7th generation on.
options:
  threads:
    description:
      - V(disabled) leaves one thread per core, for floating-point heavy work and even latency.
      - V(enabled) brings both back.
      - V(kernel) is what the kernel does by itself, V(enabled) unless its command line has C(nosmt).
      - Left out, SMT is unmanaged, and what an earlier run had set is taken back.
      - V(disabled) is refused on burstable types and on Xen PV.
    type: str
    choices: [enabled, disabled, kernel]
  method:
    description:
      - V(runtime) changes the running kernel and needs no reboot.
      - V(boot) puts C(nosmt) among the kernel arguments instead, so that nothing at boot is sized for second
        threads. V(both) does both. Nothing here reboots.
    type: str
    choices: [runtime, boot, both]
    default: runtime
  persist:
    description:
      - Whether V(disabled) is set again at each boot, by a file in C(/etc/tmpfiles.d).
      - That file names no CPU, so it is right for another instance type too. Where the kernel has no C(smt/control),
        C(nearmetal.service) plans it anew at each boot.
    type: bool
    default: true
  allow_unverified:
    description:
      - Switch SMT off on a Xen type that shares its socket, where sibling lists are the hypervisor's word.
    type: bool
    default: false
extends_documentation_fragment:
  - nearmetal.ec2.state
  - nearmetal.ec2.state.notes
  - nearmetal.ec2.attributes
  - nearmetal.ec2.attributes.actiongroup_tuning
author:
  - The nearmetal.ec2 authors (@nearmetal)
"""

EXAMPLES = r"""
- name: One thread per core, also after a reboot
  nearmetal.ec2.smt:
    threads: disabled

- name: Only until the next boot
  nearmetal.ec2.smt:
    threads: disabled
    persist: false

- name: Take it back
  nearmetal.ec2.smt:
    state: restored
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
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.smt import CONCERN
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost


def main(host: WritableHost | None = None) -> None:
    """Plan and do the concern on `host`, by default this machine."""
    state_module(CONCERN, host)


if __name__ == "__main__":
    main()
