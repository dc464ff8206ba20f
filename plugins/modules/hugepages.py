#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: hugepages
short_description: Choose huge pages of a Linux host on EC2
version_added: 0.1.0
description:
  - Chooses who gets transparent huge pages, and reserves pages of any size that the kernel has, on any node.
  - Never makes a reservation that would starve the host. If the kernel gives only a part, even after compacting its
    memory, the task fails, names the wanted and the given number of pages, and takes the change back.
options:
  thp:
    description:
      - Who gets transparent huge pages.
      - V(never) suits Redis, Aerospike and similar software. V(madvise) serves programs that ask for huge pages.
      - V(sap) is what SAP asks for HANA on this distribution, planned again at each boot. V(never) on RHEL up to 9.1
        and SLES up to 15 SP4, V(madvise) on later ones, and not available on any other distribution.
      - V(kernel) restores the choice of the kernel's command line or of the configuration that it was built with. The
        same holds for the next three options.
      - If an option of this module is left out, it is unmanaged, and what an earlier run had set is taken back.
    type: str
    choices: [kernel, always, madvise, never, sap]
  thp_defrag:
    description: Who waits while the kernel makes room for a huge page.
    type: str
    choices: [kernel, always, defer, defer+madvise, madvise, never]
  thp_shmem:
    description: Who gets huge pages for shared memory and tmpfs.
    type: str
    choices: [kernel, always, within_size, advise, never, deny, force]
  khugepaged_defrag:
    description: Whether the kernel's background thread makes room too.
    type: str
    choices: [kernel, enabled, disabled]
  max_ptes_none:
    description:
      - How many of the small pages that khugepaged makes a huge one of may be memory that the process doesn't use, 0 to
        511, or 8191 where pages have 64 KiB (C(khugepaged/max_ptes_none)).
      - "Set it when: huge pages are V(always), and a program asks for 0, as MongoDB 8 does: its memory would grow."
      - "What it costs: fewer huge pages."
    type: int
  thp_sizes:
    description:
      - Who gets transparent huge pages of the sizes below a whole one (Linux 6.8), as entries of a size and a word.
      - "Set it when: the kernel is 6.9 or newer on Graviton, whose guide tries 16 and 64 KiB; measure it."
      - "What it costs: memory that a program doesn't use, though less than with whole huge pages."
    type: list
    elements: dict
    suboptions:
      size:
        description: V(64K) or another size that the kernel has. The error for any other size lists these sizes.
        type: str
        required: true
      thp:
        description: Who gets them. With V(inherit) they follow O(thp).
        type: str
        required: true
        choices: [always, inherit, madvise, never]
  pages:
    description:
      - Huge pages to reserve, as entries of a size with either a number of pages or a share of the memory.
      - Refused on hosts below 4 GiB, beyond 80 percent of the memory, and where less than 512 MiB or 5 percent of the
        memory would stay available. For comparison, 10,000 pages of 2 MiB are 19.5 GiB.
      - Pages of sizes that aren't listed count toward the 80 percent too, whoever reserved them.
    type: list
    elements: dict
    suboptions:
      size:
        description:
          - V(2M), V(1G) or another size that the kernel has. The error for any other size
            lists these sizes.
          - Sizes of 1 GiB and more need O(method=boot).
        type: str
        required: true
      count:
        description: How many pages on the whole host.
        type: int
      percent_of_memory:
        description:
          - A share of the host's memory instead of a number of pages, planned again when the host has another size.
          - Not available with O(method=boot).
        type: int
      nodes:
        description:
          - V(spread) over all NUMA nodes, or the numbers of nodes, such as V(0,1).
          - Entries of the same size with different nodes give each node its own count. Two entries that name the same
            node are an error.
        type: str
        default: spread
  mount:
    description:
      - Where programs find huge pages as files.
      - A systemd unit mounts the folder now and at each boot. With O(group), only members of that group may use it.
        systemd itself mounts C(/dev/hugepages), which stays as it is.
    type: dict
    suboptions:
      path:
        description:
          - A directory that nothing else uses, such as C(/mnt/huge-1G). It must be empty.
          - A folder of the system such as C(/home) or C(/mnt) is an error even if it is empty.
        type: str
        required: true
      size:
        description: The size of its pages, by default the kernel's default size.
        type: str
  group:
    description:
      - The group whose members may use reserved pages for shared memory, by name or number.
      - It is set as C(vm.hugetlb_shm_group). A name comes from C(/etc/group). A service that locks such pages
        also needs C(LimitMEMLOCK=).
    type: str
  method:
    description:
      - V(runtime) changes the running kernel, V(boot) adds kernel arguments instead, V(both) does both.
      - The arguments are C(transparent_hugepage=) and C(hugepagesz= hugepages=).
      - This module never reboots the host.
    type: str
    choices: [runtime, boot, both]
    default: runtime
  persist:
    description:
      - Whether all of this is set again at each boot.
      - A file in C(/etc/tmpfiles.d) sets transparent huge pages, and one in C(/etc/sysctl.d) sets O(group).
        C(nearmetal.service) reserves pages, within the limits for the memory that the host then has.
      - O(mount) is a unit and stays in any case.
      - With V(last), C(nearmetal.service) sets it once more after C(multi-user.target), past what a boot starts.
    type: raw
    default: true
  allow_unverified:
    description:
      - Reserve pages on burstable types and on Xen PV, and allow O(thp=always) where a huge page is 512 MiB.
    type: bool
    default: false
extends_documentation_fragment:
  - nearmetal.ec2.state.common
  - nearmetal.ec2.state
  - nearmetal.ec2.state.notes
  - nearmetal.ec2.attributes
author:
  - The nearmetal.ec2 authors (@nearmetal)
"""

EXAMPLES = r"""
- name: No transparent huge pages
  nearmetal.ec2.hugepages:
    thp: never

- name: A quarter of the memory in pages of 2 MiB, spread over all nodes
  nearmetal.ec2.hugepages:
    pages:
      - size: 2M
        percent_of_memory: 25

- name: A folder of huge pages that only one group may use
  nearmetal.ec2.hugepages:
    pages:
      - size: 2M
        percent_of_memory: 25
    mount:
      path: /mnt/huge
      size: 2M
    group: dpdk

- name: Pages of 1 GiB from the next boot on
  nearmetal.ec2.hugepages:
    pages:
      - size: 1G
        count: 16
    method: boot
"""

RETURN = r"""
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

main = main_of("hugepages")

if __name__ == "__main__":
    main()
