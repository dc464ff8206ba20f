#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Choose the kernel's clock source, or take the choice back."""

from __future__ import annotations

DOCUMENTATION = r"""
module: clocksource
short_description: Choose the clock source of a Linux host on EC2
version_added: 0.1.0
description:
  - Sets the counter that the kernel tells the time from, keeps it over reboots, and takes it back.
  - On Xen instances the default C(xen) makes each clock read a system call; C(tsc) is read in user space.
  - On Nitro the kernel's own choice among C(tsc) and C(kvm-clock) is right and is left alone.
options:
  source:
    description:
      - V(auto) takes C(tsc) on Xen HVM and on metal, keeps C(tsc) or C(kvm-clock) on Nitro,
        and has nothing to do on Graviton.
      - V(kernel) gives the choice back to the kernel, and to C(clocksource=) on its command line.
      - Any other value is the name of a clock source; one that the kernel doesn't offer is an error.
      - Left out, the clock source is unmanaged, and what an earlier run had set is taken back.
    type: str
  tsc_reliable:
    description:
      - V(enabled) boots with C(tsc=reliable), so that the kernel's watchdog doesn't look at C(tsc).
        It is a kernel argument, because the kernel asks only while it boots. RV(reboot_required) says what is pending.
      - Refused on virtual hosts, which can be moved to other hardware. On metal it comes with a warning.
      - V(kernel) takes our argument away.
      - Left out, it is unmanaged, and what an earlier run had set is taken back.
    type: str
    choices: [enabled, kernel]
  persist:
    description:
      - Whether it holds after a reboot too.
      - A source given by name is set at each boot by a file in C(/etc/tmpfiles.d).
      - V(auto) is planned anew at each boot by C(nearmetal.service), because the same disk may start as another type.
        It needs systemd; without it, this is refused.
      - V(kernel) needs nothing.
    type: bool
    default: true
  allow_unverified:
    description:
      - Take C(tsc) although the CPU doesn't promise C(constant_tsc).
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
- name: Run on the clock source that suits the host
  nearmetal.ec2.clocksource:
    source: auto

- name: Run on tsc, also after a reboot
  nearmetal.ec2.clocksource:
    source: tsc

- name: Take it back
  nearmetal.ec2.clocksource:
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
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.clocksource import CONCERN
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost


def main(host: WritableHost | None = None) -> None:
    """Plan and do the concern on `host`, by default this machine."""
    state_module(CONCERN, host)


if __name__ == "__main__":
    main()
