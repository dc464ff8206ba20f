#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_facts
short_description: Observe host class, clock and processor of a host on EC2
version_added: 0.1.0
description:
  - Returns the class of EC2 host (Xen PV, Xen HVM, Nitro, metal), the clock source in use, and what the processor
    promises.
  - Distinguishes metal from Nitro. C(ansible.builtin.setup) calls both a KVM guest.
notes:
  - Asks no metadata service and writes nothing. It reads C(/sys), C(/proc), C(/etc/os-release),
    names in C(/boot), and the kernel log.
  - Without root the kernel log, and on some systems C(/boot), can't be read. Those values are null.
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
- name: Observe the host
  nearmetal.ec2.host_facts:

- name: Name the hosts whose clock reads are system calls
  ansible.builtin.debug:
    msg: "{{ inventory_hostname }} runs on {{ ansible_facts.nearmetal.clock.current }}"
  when: ansible_facts.nearmetal.clock.vdso is false

- name: Stop before tuning a burstable instance
  ansible.builtin.assert:
    that: ansible_facts.nearmetal.platform.burstable is not true
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
        platform:
          description: What kind of host it is.
          type: dict
          contains:
            host_class:
              description:
                - One of V(xen_pv), V(xen_hvm), V(nitro), V(metal), V(not_ec2), V(container).
                - In a container the other values still describe the machine below it.
              type: str
              sample: nitro
            hypervisor:
              description: What runs below the host, V(xen), V(nitro), V(none) or V(other).
              type: str
              sample: nitro
            virtualization:
              description: One of V(pv), V(hvm), V(pvh), V(none).
              type: str
              sample: hvm
            hypervisor_flag:
              description: Whether the x86 processor has the flag C(hypervisor). Null on arm64, which has no such flag.
              type: bool
              sample: true
            container:
              description: The kind of container, V(other) when its kind is not known, V(none) for a host.
              type: str
              sample: none
            architecture:
              description: The architecture, as C(uname -m) prints it.
              type: str
              sample: x86_64
            instance_type:
              description: The instance type. Null on Xen, whose firmware doesn't report it.
              type: str
              sample: c8i.16xlarge
            instance_id:
              description: The instance's id. Null on Xen.
              type: str
              sample: i-0123456789abcdef0
            burstable:
              description: Whether the type is of a T family, which uses CPU credits. Null when the type isn't known.
              type: bool
              sample: false
            distribution:
              description: C(ID) of C(/etc/os-release).
              type: str
              sample: amzn
            distribution_version:
              description: C(VERSION_ID) of C(/etc/os-release).
              type: str
              sample: "2023"
            kernel:
              description: The kernel's release, as C(uname -r) prints it.
              type: str
              sample: 6.1.94-99.176.amzn2023.x86_64
            kernel_version:
              description: The upstream version as three numbers, to compare.
              type: list
              elements: int
              sample: [6, 1, 94]
            kernel_build:
              description: The distribution's numbers after the first dash.
              type: list
              elements: int
              sample: [99, 176]
            boot_loader:
              description:
                - A guess from the files in C(/boot). One of V(grub_pc), V(grub_efi), V(grub_bls), V(grub_legacy),
                  V(systemd_boot).
              type: str
              sample: grub_bls
            scheduler:
              description:
                - The program of sched_ext that schedules tasks (Linux 6.12). Null when the kernel's own scheduler does.
              type: str
              sample: lavd_1.0.17
        clock:
          description: The clock source.
          type: dict
          contains:
            current:
              description: The clock source in use.
              type: str
              sample: tsc
            available:
              description: The clock sources that the kernel offers, the best rated first.
              type: list
              elements: str
              sample: [tsc, kvm-clock, acpi_pm]
            vdso:
              description:
                - Whether user space reads the source in use without a system call.
                - Null for a source that isn't known.
              type: bool
              sample: true
            constant_tsc:
              description: Whether the TSC runs at one rate. Null on arm64.
              type: bool
              sample: true
            constant_by_model:
              description:
                - Whether this is an Intel CPU whose TSC runs at one rate. Linux before 6.15 set V(constant_tsc) for it.
                  Newer versions set it only where the hypervisor passes the CPU's own flag on, which Xen doesn't. Null
                  on arm64.
              type: bool
              sample: true
            nonstop_tsc:
              description: Whether the TSC keeps running in deep idle states. False is normal on Xen. Null on arm64.
              type: bool
              sample: true
            unstable_marks:
              description:
                - Messages of the kernel log that call the TSC unstable. Null when the log can't be read.
                - An empty list is no proof, because the log forgets its oldest messages.
              type: list
              elements: str
              sample: []
            switched_to:
              description: The clock sources that the kernel switched to, in order, as its log shows.
              type: list
              elements: str
              sample: [kvm-clock, tsc]
            log_cut:
              description:
                - Whether the kernel log is longer than 8 MiB, of which only the beginning was read.
                  Null when it can't be read.
              type: bool
              sample: false
            source_argument:
              description: The source that C(clocksource=) on the kernel's command line names.
              type: str
              sample: null
            reliable_argument:
              description: Whether C(tsc=reliable) is on the kernel's command line.
              type: bool
              sample: false
        cpu:
          description: The first processor, which stands for all.
          type: dict
          contains:
            vendor:
              description: The processor's vendor.
              type: str
              sample: GenuineIntel
            model:
              description: The processor's name.
              type: str
              sample: Intel(R) Xeon(R) 6975P-C
            flags:
              description: The processor's flags that matter to this collection.
              type: list
              elements: str
              sample: [hypervisor, constant_tsc, nonstop_tsc]
"""

from ansible_collections.nearmetal.ec2.plugins.module_utils._ansible.module import main_of

main = main_of("host_facts")

if __name__ == "__main__":
    main()
