#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How deep CPUs sleep and how fast they run, or take the choice back."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cpu_power
short_description: Choose idle states, turbo and governor of a Linux host on EC2
version_added: 0.1.0
description:
  - Leaves out idle states (C-states) by the time it takes to wake up from them, switches turbo, and sets governor and
    energy preference of cpufreq, all while the host runs.
  - Most types leave this to the hypervisor. Then the answer is C(not_applicable), with the reason. Which files the
    kernel has decides, no list of types.
options:
  idle:
    description:
      - V(c1) keeps the quickest state that halts the CPU, and leaves out all that are slower to wake up from.
      - V(poll) leaves out that one too. It burns full power. It is refused off metal, and needs O(allow_poll).
      - V(kernel) uses every state that the kernel would use by itself.
      - Left out, as every option here, it is unmanaged, and what an earlier run had set is taken back.
    type: str
    choices: [kernel, c1, poll]
  max_exit_latency_us:
    description:
      - Leave out every idle state that takes longer to wake up from, in microseconds. Instead of O(idle).
    type: int
  turbo:
    description:
      - V(disabled) keeps clocks at the nominal frequency, so that nobody's AVX code slows others down.
      - V(enabled) and V(kernel) let busy cores clock up; V(kernel) isn't written down for later boots.
    type: str
    choices: [kernel, enabled, disabled]
  governor:
    description:
      - A governor of cpufreq by name, such as V(performance). One that the host doesn't offer is an error.
    type: str
  energy_performance_preference:
    description:
      - The preference of intel_pstate or amd-pstate by name, such as V(balance_performance).
      - Under the governor V(performance) intel_pstate takes no other than V(performance).
    type: str
  method:
    description:
      - V(runtime) changes the running kernel and needs no reboot.
      - V(boot) puts C(intel_idle.max_cstate=1 processor.max_cstate=1) (for V(poll) C(idle=poll)) among the
        kernel arguments instead; for O(idle) alone. V(both) does both. Nothing here reboots.
    type: str
    choices: [runtime, boot, both]
    default: runtime
  persist:
    description:
      - Whether all is set again at each boot. O(turbo), O(governor) and O(energy_performance_preference) by a file in
        C(/etc/tmpfiles.d), idle states by C(nearmetal.service), which plans them anew for the CPUs that it finds.
    type: bool
    default: true
  allow_poll:
    description:
      - Let CPUs of a metal instance poll instead of idle.
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
- name: Wake up within microseconds
  nearmetal.ec2.cpu_power:
    idle: c1

- name: Even clocks for AVX code
  nearmetal.ec2.cpu_power:
    idle: c1
    turbo: disabled
    governor: performance

- name: Take it back
  nearmetal.ec2.cpu_power:
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
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.cpu_power import CONCERN
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost


def main(host: WritableHost | None = None) -> None:
    """Plan and do the concern on `host`, by default this machine."""
    state_module(CONCERN, host)


if __name__ == "__main__":
    main()
