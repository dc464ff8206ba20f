#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Transparent and reserved huge pages, or take the choice back."""

from __future__ import annotations

DOCUMENTATION = r"""
module: hugepages
short_description: Choose huge pages of a Linux host on EC2
version_added: 0.1.0
description:
  - Chooses who gets transparent huge pages, and reserves pages of any size that the kernel has, on any node.
  - No reservation is made that would starve the host. What the kernel gives only in part, even after it compacted its
    memory, is a failure that names what was asked and what was given, and is taken back.
options:
  thp:
    description:
      - Who gets transparent huge pages. V(never) for Redis, Aerospike and their like, V(madvise) for those who ask.
      - V(kernel) gives it back, here as with the next three options. The choice is that of the command line, or of the
        configuration that the kernel was built with.
      - Left out, as every option here, it is unmanaged, and what an earlier run had set is taken back.
    type: str
    choices: [kernel, always, madvise, never]
  thp_defrag:
    description: Who waits while the kernel makes room for a huge page.
    type: str
    choices: [kernel, always, defer, defer+madvise, madvise, never]
  thp_shmem:
    description: Huge pages for shared memory and tmpfs.
    type: str
    choices: [kernel, always, within_size, advise, never, deny, force]
  khugepaged_defrag:
    description: Whether the kernel's background thread makes room too.
    type: str
    choices: [kernel, enabled, disabled]
  pages:
    description:
      - Reserved huge pages. Refused on hosts below 4 GiB, beyond 80 percent of the memory, and where they would leave
        less than 512 MiB or 5 percent of the memory available. 10,000 pages of 2 MiB are 19.5 GiB.
      - Pages of sizes that aren't listed, whoever reserved them, count among the 80 percent.
    type: list
    elements: dict
    suboptions:
      size:
        description:
          - V(2M), V(1G) or another size that the kernel has. One that it lacks is an error that names those it has.
          - Sizes of 1 GiB and more need O(method=boot).
        type: str
        required: true
      count:
        description: How many pages on the whole host.
        type: int
      percent_of_memory:
        description: How much of the host's memory instead, planned anew when the host has another size. Not at boot.
        type: int
      nodes:
        description:
          - V(spread) over all NUMA nodes, or their numbers such as V(0,1).
          - Entries of one size with other nodes each give each node its own count. A node that two of them name is an
            error.
        type: str
        default: spread
  mount:
    description:
      - Where programs find huge pages as files, mounted by a systemd unit now and at each boot. With O(group)
        its members alone may use it. systemd itself mounts C(/dev/hugepages), which is left alone.
    type: dict
    suboptions:
      path:
        description: A folder of its own, such as C(/mnt/huge-1G). One that isn't empty is an error.
        type: str
        required: true
      size:
        description: The size of its pages, by default the kernel's default size.
        type: str
  group:
    description:
      - The group whose members may take reserved pages for shared memory, in C(vm.hugetlb_shm_group).
        A name of C(/etc/group), or a number. To lock them a service needs C(LimitMEMLOCK=) too.
    type: str
  method:
    description:
      - V(runtime) changes the running kernel.
      - V(boot) puts C(transparent_hugepage=) and C(hugepagesz= hugepages=) among the kernel arguments instead, and
        V(both) does both. Nothing here reboots.
    type: str
    choices: [runtime, boot, both]
    default: runtime
  persist:
    description:
      - Whether it is set again at each boot. Transparent huge pages by a file in C(/etc/tmpfiles.d), reserved ones by
        C(nearmetal.service), which guards the memory that the host has then, O(group) by C(/etc/sysctl.d).
      - O(mount) is a unit, and stays.
    type: bool
    default: true
  allow_unverified:
    description:
      - Reserve pages on burstable types and on Xen PV, and take O(thp=always) where a huge page is 512 MiB.
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
- name: No transparent huge pages
  nearmetal.ec2.hugepages:
    thp: never

- name: A quarter of the memory in pages of 2 MiB, spread over all nodes
  nearmetal.ec2.hugepages:
    pages:
      - size: 2M
        percent_of_memory: 25

- name: A place for them that only one group may use
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
# Generated by `make generate` from dev/generate/returns/contract.yml
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
# End of the generated part
"""

from ansible_collections.nearmetal.ec2.plugins.module_utils._ansible.module import state_module
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.hugepages import CONCERN
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost


def main(host: WritableHost | None = None) -> None:
    """Plan and do the concern on `host`, by default this machine."""
    state_module(CONCERN, host)


if __name__ == "__main__":
    main()
