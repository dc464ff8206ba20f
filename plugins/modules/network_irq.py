#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: network_irq
short_description: Spread the work of network interfaces over the CPUs of a Linux host on EC2
version_added: 0.1.0
description:
  - Places the interrupt of each queue of each network interface, and shares the packets of few queues among CPUs
    (RPS, RFS, XPS).
  - If an option is left out, it is unmanaged, and what an earlier run had set is taken back.
options:
  policy:
    description:
      - V(spread) gives each queue a CPU of its own, V(dedicated) puts all queues on a few cores, V(auto) chooses
        V(spread), V(irqbalance) and V(kernel) leave the interrupts to irqbalance or the kernel.
      - V(spread) takes cores of the NIC's node first and second threads last. The queues of several NICs
        are spread over all the CPUs.
      - V(dedicated) uses whole cores, one of eight or those in O(irq_cpus). It names the CPUs that are left for the
        application, also in C(/etc/nearmetal/compute_cpus) (C(COMPUTE_CPUS=), a kernel list).
      - V(auto) is refused on Xen PV.
      - A mask of several CPUs is never written, because the kernel would still deliver to one of them.
      - While irqbalance runs, V(auto), V(spread) and V(dedicated) tell it in its own configuration to leave these
        interfaces alone, and place nothing until it was started with that configuration (O(restart_irqbalance)).
    type: str
    choices: [auto, spread, dedicated, irqbalance, kernel]
  queues:
    description:
      - How many queue pairs to use, a number or V(max).
      - A change interrupts traffic for a moment.
    type: str
  rps:
    description:
      - The CPUs that share the packets of a receive queue; a kernel list such as V(4-7,12), V(auto), or V(kernel)
        for none.
      - V(auto) uses the CPUs that share no core with an interrupt and belong to the node of the CPU that answers the
        queue, where there are fewer queues than CPUs (for ENA, at least four CPUs per queue), and none on Graviton.
    type: str
  rfs:
    description:
      - How many flows to remember, so that a packet is handled where its reader runs; a number, V(auto), or V(kernel)
        for none.
      - A number is rounded up to a power of two, as the kernel does. V(auto) is 32768 where RPS is on, else none.
      - V(auto) of a workload is a minimum, because a workload never lowers a host's number of flows.
    type: str
  xps:
    description:
      - The CPUs that send through each transmit queue; a kernel list, V(auto) or V(kernel).
      - The CPUs of a kernel list are dealt out to the queues in their order.
      - V(auto) lets each CPU send through the queue whose interrupt is nearest, where there are fewer queues than
        CPUs. V(kernel) leaves the choice to the hash of the flow.
    type: str
  irq_cpus:
    description:
      - The only CPUs that may get interrupts of the interfaces that O(policy) places, as a kernel list.
      - It fails without a policy.
      - On a burstable type interrupts are placed only on CPUs that this names.
    type: str
  compute_units:
    description:
      - Services that systemd starts on the CPUs that O(policy=dedicated) leaves free, by full names such as
        V(redis.service).
      - It takes effect when a service is next started. A service that O(nearmetal.ec2.numa#module:services) binds is
        left to that option.
    type: list
    elements: str
  isolation:
    description:
      - V(enabled) keeps the CPUs without interrupts under O(policy=dedicated), except the core of CPU 0, free of the
        kernel's own work from the next boot on; V(kernel) takes that back.
      - These are the kernel arguments C(isolcpus=), C(nohz_full=) and C(rcu_nocbs=). Then only what you bind to these
        CPUs runs there, such as O(compute_units).
      - The arguments name CPUs of this size of host. Take them back before its disk starts as another type.
      - It is refused where somebody else already isolates CPUs.
    type: str
    choices: [kernel, enabled]
  interfaces:
    description:
      - Different values for single interfaces.
      - A bond or VLAN stands for the interfaces below it.
    type: list
    elements: dict
    suboptions:
      name:
        description: The interface.
        type: str
        required: true
      policy:
        description: Like O(policy), for this interface.
        type: str
        choices: [auto, spread, dedicated, irqbalance, kernel]
      queues:
        description: Like O(queues), for this interface.
        type: str
      rps:
        description: Like O(rps), for this interface.
        type: str
      rfs:
        description: Like O(rfs), for this interface.
        type: str
      xps:
        description: Like O(xps), for this interface.
        type: str
  allow_disruptive:
    description:
      - Allow O(queues) to change on an interface that carries the default route, itself or below a bond, bridge or
        VLAN.
      - Its traffic stops for a moment.
    type: bool
    default: false
  restart_irqbalance:
    description:
      - Restart irqbalance when its configuration changed for interrupts that are placed.
      - Without it, the finding is V(needs_restart), and C(nearmetal.service) places the interrupts after somebody
        restarts irqbalance.
    type: bool
    default: false
  persist:
    description:
      - Whether C(nearmetal.service) plans this again at each boot, when an interface appears, and when queues change.
      - A placement for one instance size doesn't fit another size.
      - With V(last), C(nearmetal.service) sets it once more after C(multi-user.target), past what a boot starts.
    type: raw
    default: true
extends_documentation_fragment:
  - nearmetal.ec2.state.common
  - nearmetal.ec2.state
  - nearmetal.ec2.state.notes
  - nearmetal.ec2.attributes
author:
  - The nearmetal.ec2 authors (@nearmetal)
"""

EXAMPLES = r"""
- name: A CPU for each queue, and help for few queues
  nearmetal.ec2.network_irq:
    policy: auto
    rps: auto
    rfs: auto
    xps: auto

- name: Interrupts on two cores, the application on all others
  nearmetal.ec2.network_irq:
    policy: dedicated
    irq_cpus: 0,1,32,33

- name: All queues of one interface, the others as they are
  nearmetal.ec2.network_irq:
    interfaces:
      - name: ens6
        queues: max
        policy: spread

- name: Take it back
  nearmetal.ec2.network_irq:
    state: restored
"""

RETURN = r"""
queue_map:
  description:
    - The CPUs that serve each queue of each interface, now and as planned.
    - RV(nearmetal.ec2.tune#module:queue_map) describes it.
  type: list
  elements: dict
  returned: when interfaces were planned
topology:
  description: The host in short, for a picture, as RV(nearmetal.ec2.tune#module:topology) describes it.
  type: dict
  returned: when interfaces were planned
# Generated by `make generate` from dev/generate/returns/concern.yml
msg:
  description:
    - One line, what was done or would be done.
    - Beside it the module returns C(actions), C(findings), C(errors), C(reboot_required), C(reboot_reasons),
      C(platform) and C(ansible_stats), as M(nearmetal.ec2.tune) describes them.
  type: str
  returned: always
# End of the generated part
"""

from ansible_collections.nearmetal.ec2.plugins.module_utils._ansible.module import main_of

main = main_of("network_irq")

if __name__ == "__main__":
    main()
