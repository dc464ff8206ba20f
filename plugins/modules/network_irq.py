#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Place the interrupts of network interfaces, share their packets, or take it back."""

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
    type: bool
    default: true
extends_documentation_fragment:
  - nearmetal.ec2.state.common
  - nearmetal.ec2.state
  - nearmetal.ec2.state.notes
  - nearmetal.ec2.attributes
  - nearmetal.ec2.attributes.actiongroup_tuning
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
# Generated by `make generate` from dev/generate/returns/queue_map.yml
queue_map:
  description: The CPUs that serve each queue of each interface, now and as planned, as texts such as V(0-3,8).
  type: list
  elements: dict
  returned: when network_irq was planned
  contains:
    name: {description: The interface., type: str}
    place: {description: Its device., type: str, sample: "0000:00:05.0"}
    node: {description: Its NUMA node; null if it belongs to none., type: int}
    queues:
      description:
        - "C(queue), its number, and C(now) and C(wanted): C(cpus) that answer its interrupts, their C(nodes), C(rps),
          the CPUs that help it, and C(xps), those that send through it. Null for a queue that the run adds or removes."
      type: list
      elements: dict
      sample: [{"queue": 0, "now": {"cpus": "0", "nodes": "0", "rps": "", "xps": ""}, "wanted": null}]
topology:
  description:
    - The host's sockets, cores, caches, nodes and devices in short, for a picture. CPUs are texts such as V(0-3,8).
    - M(nearmetal.ec2.topology_facts) returns all that is known about them.
  type: dict
  returned: when network_irq was planned
  contains:
    sockets: {description: The online CPUs of each socket., type: list, elements: str, sample: ["0-1"]}
    nodes: {description: Each NUMA node with its CPUs and bytes of memory., type: list, elements: dict}
    cores: {description: The online threads of each core., type: list, elements: str, sample: ["0-1"]}
    offline: {description: The CPUs that are offline., type: str, sample: ""}
    caches: {description: Each cache with its size and the CPUs of those that cores share., type: list, elements: dict}
    nics: {description: "Each interface with its device, node and driver.", type: list, elements: dict}
    disks:
      description:
        - Each disk with its kind and node. Outside check mode only with the callback P(nearmetal.ec2.fleet#callback),
          which draws them, or where a concern plans disks.
      type: list
      elements: dict
# End of the generated part
# Generated by `make generate` from dev/generate/returns/contract.yml
msg:
  description: One line, what was done or would be done.
  type: str
  returned: always
  sample: "clocksource: hpet → tsc, persisted, no reboot"
actions:
  description: The changes of this run, in order; in check mode, the changes that a real run would make.
  type: list
  elements: dict
  returned: unless planning failed
  contains:
    concern: {description: The concern to which the change belongs., type: str}
    knob: {description: The knob; most knobs have the name of the option that sets them., type: str}
    what: {description: "The kind of setting, such as V(clock.current) or V(sysctl).", type: str, sample: clock.current}
    where: {description: "The place, such as a CPU, a device or a file; empty when there is only one.", type: str}
    before: {description: The value found; null when absent., type: raw}
    after: {description: The value set; null when removed., type: raw}
    scope: {description: "V(runtime) applies until the next boot, V(boot) from the next boot on.", type: str}
    disruptive: {description: Whether it may interrupt traffic or a service., type: bool}
    reversible:
      description: "How it can be taken back: V(now) while the host runs, V(by_reboot) by a reboot, V(no) not at all."
      type: str
    wanted_by: {description: "V(user), V(workload), or V(auto) when the value was left to the collection.", type: str}
    reason: {description: Why the setting is changed., type: str}
    reference: {description: The source of the reason., type: str}
findings:
  description: One statement per knob, or per knob and place.
  type: list
  elements: dict
  returned: unless planning failed
  contains:
    concern: {description: The concern to which the knob belongs., type: str}
    knob: {description: "The knob, or the check of a concern that changes nothing.", type: str}
    where: {description: The place; empty when there is only one., type: str}
    status:
      description:
        - One of V(ok), V(would_change), V(changed), V(needs_reboot), V(needs_restart), V(not_applicable), V(refused),
          V(unchangeable), V(unknown), V(advice), V(waived).
      type: str
    now: {description: The value that the host has., type: raw}
    wanted: {description: The value that is wanted., type: raw}
    reason: {description: "Why the knob has this status, and what to do.", type: str}
    reference: {description: The source of the reason., type: str}
    gain: {description: "The expected gain, with the source of the figure; empty when not known.", type: str}
    owner:
      description: "Who sets the value today: V(nearmetal.ec2), V(tuned), V(kubelet) or a file; empty when unknown."
      type: str
errors:
  description: Concern → what went wrong. All changes of such a concern were taken back.
  type: dict
  returned: unless planning failed
reboot_required:
  description: Whether something takes effect only at the next boot.
  type: bool
  returned: unless planning failed
reboot_reasons:
  description: What takes effect at the next boot.
  type: list
  elements: str
  returned: unless planning failed
platform:
  description: The kind of host, as in RV(nearmetal.ec2.host_facts#module:ansible_facts.nearmetal.platform).
  type: dict
  returned: unless planning failed
ansible_stats:
  description:
    - What was done, in short, below C(nearmetal.hosts), the host and the module.
    - It has the form of M(ansible.builtin.set_stats), and AWX shows it as an artifact of the job.
  type: dict
  returned: success with Ansible, without C(no_log) and C(async)
# End of the generated part
"""

from ansible_collections.nearmetal.ec2.plugins.module_utils._ansible.module import main_of

main = main_of("network_irq")

if __name__ == "__main__":
    main()
