#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: network_facts
short_description: Observe queues, interrupts, steering and limits of a host's network interfaces
version_added: 0.1.0
description:
  - Observes each interface that has hardware, from C(/proc/interrupts), C(/proc/irq), C(/sys/class/net) and the
    driver's own answers, which need no C(ethtool) program.
  - Finds the interrupts of a queue in what the kernel lists for the device, or else by their names, as ENA, ixgbevf,
    virtio, xen-netfront, mlx5, mana, igb, igbvf, i40e, ice, iavf and bnxt write them.
  - The names of ENA and ixgbevf are tested with recorded text, those of virtio also on a running kernel.
options:
  sample_seconds:
    description:
      - Seconds for which to observe counters; V(0) counts since boot, and allowances since the driver was reset.
    type: int
    default: 0
notes:
  - Needs no root and writes nothing.
  - A value that the host doesn't report is null.
extends_documentation_fragment:
  - nearmetal.ec2.attributes.check
  - nearmetal.ec2.attributes.facts
seealso:
  - module: nearmetal.ec2.topology_facts
author:
  - The nearmetal.ec2 authors (@nearmetal)
"""

EXAMPLES = r"""
- name: Observe the interfaces
  nearmetal.ec2.network_facts:

- name: Which limits of the instance type were hit within ten seconds?
  nearmetal.ec2.network_facts:
    sample_seconds: 10
  register: network

- name: Show them
  ansible.builtin.debug:
    var: ansible_facts.nearmetal.network.sample.allowances
"""

RETURN = r"""
ansible_facts:
  description: The facts, below one name.
  returned: always
  type: dict
  contains:
    nearmetal:
      description: Everything nearmetal.ec2 observes.
      type: dict
      contains:
        network:
          description: The interfaces that have hardware.
          type: dict
          contains:
            interfaces:
              description:
                - Per interface C(place) (its device, stable when renamed), C(up), C(driver), C(driver_version),
                  C(node) (null when it belongs to none), C(queues) and C(queues_max) (pairs), C(interrupts) (queue →
                  number), C(surplus_interrupts) (of queues that aren't in use).
                - C(affinity) and C(effective) say per queue which CPUs may get its interrupt, and which one does.
                - C(rps), C(rfs) and C(xps) are the kernel's own steering per queue, CPUs as kernel lists.
                - C(rings) are descriptors per queue and C(rings_max) the most, C(coalesce) microseconds and frames,
                  C(offloads) what is on, C(bql) per transmit queue the bytes in flight that are always allowed, and
                  C(bql_max) the most.
              type: dict
              sample:
                ens5:
                  place: "0000:00:05.0"
                  up: true
                  driver: ena
                  queues: 8
                  queues_max: 8
                  affinity: {"0": "0", "1": "1"}
            uppers:
              description: Bonds, VLANs and bridges, each with the interfaces of the list above that carry it.
              type: dict
              sample: {"bond0": ["ens5", "ens6"]}
            default_route:
              description: Interfaces that have a default route.
              type: list
              elements: str
              sample: [ens5]
            default_affinity:
              description: The CPUs that a new interrupt may go to, as a kernel list.
              type: str
              sample: "0-63"
            ena_parameters:
              description: The parameters of the ENA driver that runs on the host.
              type: list
              elements: str
              sample: [debug]
            llq:
              description:
                - Per ENA interface how it sends. V(llq) pushes packets to the device, V(large) with headers of 224
                  bytes, V(host) doesn't. Null when the kernel log doesn't tell.
              type: dict
              sample: {"ens5": "llq"}
            compute_cpus:
              description: The CPUs that dedicated interrupts leave to the application, as a kernel list.
              type: str
              sample: "2-31,34-63"
            irqbalance:
              description: Whether the daemon irqbalance runs and moves interrupts.
              type: bool
              sample: false
            interrupt_load:
              description: CPUs that spent at least one percent of their time since boot on interrupts, with the share.
              type: dict
              sample: {"3": 0.42}
            sample:
              description: What O(sample_seconds) showed.
              type: dict
              contains:
                seconds:
                  description: For how many seconds the counters were observed. 0 means since boot or reset.
                  type: int
                  sample: 10
                interrupt_load:
                  description: Per CPU the share of its time in interrupts, 0 to 1.
                  type: dict
                  sample: {"0": 0.01, "1": 0.4}
                steal:
                  description: The share of CPU time, 0 to 1, that other guests took. Null when the kernel doesn't tell.
                  type: float
                  sample: 0.0
                allowances:
                  description:
                    - Per ENA interface how many packets were queued or dropped because the instance type allows no
                      more. Tuning doesn't help against these, another type does.
                    - C(conntrack_allowance_available) is how many more connections are allowed, not a difference.
                  type: dict
                  sample: {"ens5": {"pps_allowance_exceeded": 0}}
                packets:
                  description: Per ENA interface how many packets it sent and received.
                  type: dict
                  sample: {"ens5": 12000000}
"""

from ansible_collections.nearmetal.ec2.plugins.module_utils._ansible.module import main_of

main = main_of("network_facts")

if __name__ == "__main__":
    main()
