#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: topology_facts
short_description: Observe CPUs, cores, sockets, caches and NUMA nodes of a host
version_added: 0.1.0
description:
  - Observes the topology as the kernel lists it, including CPUs that are offline and nodes that have only memory.
  - Computes nothing from CPU numbers. Siblings are adjacent on one instance type and half-way apart on another, and the
    number of sockets says nothing about the number of nodes.
  - Sets of CPUs are kernel lists, such as V(0-3,8), to keep the result of 384 CPUs small.
notes:
  - Needs no root and writes nothing. It reads C(/sys/devices/system) and C(/proc/meminfo).
  - A value that the host doesn't report is null.
extends_documentation_fragment:
  - nearmetal.ec2.attributes.check
  - nearmetal.ec2.attributes.facts
seealso:
  - module: nearmetal.ec2.host_facts
author:
  - The nearmetal.ec2 authors (@nearmetal)
"""

EXAMPLES = r"""
- name: Observe the topology
  nearmetal.ec2.topology_facts:

- name: Size a worker pool by physical cores
  ansible.builtin.debug:
    msg: "{{ ansible_facts.nearmetal.topology.cores_count }} workers"

- name: Pin a database to the CPUs of one node
  ansible.builtin.debug:
    msg: "numactl --physcpubind={{ ansible_facts.nearmetal.topology.nodes[0].cpus }}"
  when: ansible_facts.nearmetal.topology.nodes_count > 1
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
        topology:
          description: CPUs, caches, nodes and memory. A value that the host doesn't report is null.
          type: dict
          contains:
            cpus_online:
              description: The online CPUs, as a text such as V(0-3,8).
              type: str
              sample: "0-63"
            cpus_offline:
              description: The CPUs that are present and offline.
              type: str
              sample: ""
            cpus_present:
              description: The CPUs that the machine has, online or offline.
              type: str
              sample: "0-63"
            cpus_possible:
              description: The CPUs that the machine has or could get while the host runs. On Xen some are absent.
              type: str
              sample: "0-63"
            cpus_online_count:
              description: The number of online CPUs.
              type: int
              sample: 64
            sockets_count:
              description: The number of sockets with an online CPU.
              type: int
              sample: 1
            cores_count:
              description: The number of cores with an online CPU.
              type: int
              sample: 32
            threads_per_core_max:
              description: The largest number of online threads of a core.
              type: int
              sample: 2
            threads_per_core_min:
              description:
                - The smallest number of online threads of a core.
                - It is lower than the largest if single siblings are offline.
              type: int
              sample: 2
            sockets:
              description: The online CPUs of each socket.
              type: list
              elements: str
              sample: ["0-63"]
            cores:
              description: The online CPUs of each core, which are SMT siblings.
              type: list
              elements: str
              sample: ["0,32", "1,33"]
            caches:
              description:
                - Per level and kind (C(L1d), C(L1i), C(L2), C(L3)) the CPUs that share each cache.
                - Empty when the kernel lists no caches.
              type: dict
              sample: {"L1d": ["0,32", "1,33"], "L3": ["0-63"]}
            cache_sizes:
              description: Per level and kind the size in bytes of a cache of the first online CPU.
              type: dict
              sample: {"L1d": 32768, "L3": 31457280}
            nodes:
              description: The NUMA nodes. Empty for a kernel without NUMA.
              type: list
              elements: dict
              contains:
                id:
                  description: The node's number. Numbers may have gaps.
                  type: int
                cpus:
                  description: Its online CPUs. Empty for a node with memory alone, null if the kernel doesn't tell.
                  type: str
                cpulist:
                  description: Its CPUs as the kernel's file lists them; some may be offline. Null without such a file.
                  type: str
                memory:
                  description: The node's memory in bytes.
                  type: int
                distances:
                  description: The distance to each node, in the order of the list. 10 is local.
                  type: list
                  elements: int
              sample: [{"id": 0, "cpus": "0-63", "cpulist": "0-63", "memory": 132070244352, "distances": [10]}]
            nodes_count:
              description: The number of nodes.
              type: int
              sample: 1
            memory_only_nodes:
              description: The numbers of the nodes without an online CPU.
              type: list
              elements: int
              sample: []
            memory:
              description: The memory of the host in bytes, C(MemTotal) of C(/proc/meminfo).
              type: int
              sample: 132070244352
"""

from ansible_collections.nearmetal.ec2.plugins.module_utils._ansible.module import main_of

main = main_of("topology_facts")

if __name__ == "__main__":
    main()
