#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: block_storage
short_description: Set the queues of EBS volumes and instance store of a Linux host on EC2
version_added: 0.1.0
description:
  - Sets timeout, scheduler, read-ahead and request merging of disks while the host runs, and does the same for disks
    that are attached later.
  - Recognizes EBS and instance store by the model that the NVMe device names, never by the disk's name, which changes
    with the order in which disks are found.
  - An option applies to every disk. O(disks) sets it for one kind, one device or one mount point.
options:
  io_timeout:
    description:
      - How long a request may take before the kernel gives up; V(aws), V(max) or milliseconds.
      - V(aws) sets what AWS's own rules set, the longest possible time for EBS and 90 s for instance store.
      - V(max) is the longest possible time. It is refused for instance store, where a disk that doesn't answer is
        broken.
      - The kernel rounds milliseconds up to its ticks.
      - If an option of this module is left out, it is unmanaged, and what an earlier run had set is taken back.
    type: str
  scheduler:
    description:
      - The I/O scheduler by name, such as V(none) or V(mq-deadline).
      - A scheduler that a disk doesn't offer is an error. Where the kernel calls V(none) noop, noop is set.
    type: str
  read_ahead_kb:
    description:
      - How far the kernel reads ahead of a sequential reader, in KiB.
      - The kernel rounds it down to pages. A workload's value is a minimum; only your own value is exact.
      - With O(disks[].mount) or O(disks[].device), the RAID or LVM device itself gets it too.
    type: int
  nr_requests:
    description:
      - How many requests may wait in the kernel.
      - At least 4. Without a scheduler this is at most what a hardware queue takes.
    type: int
  nomerges:
    description:
      - V(0) merges adjacent requests, V(1) only where that is cheap, V(2) never.
    type: int
    choices: [0, 1, 2]
  rq_affinity:
    description:
      - V(0) completes a request on the interrupted CPU, V(1) on one near the CPU that started it, V(2) on that CPU
        itself.
      - Near means that the two CPUs share a cache.
    type: int
    choices: [0, 1, 2]
  max_sectors_kb:
    description:
      - How large a request may be, in KiB, at most what the disk's hardware takes.
      - EBS counts a large request of an SSD volume as several operations (256 KiB each), of st1 and sc1 as one (1 MiB).
    type: int
  disks:
    description:
      - The same options for some disks, each entry for one kind of disk, one device or one mount point.
      - An entry for a device or a mount point wins over an entry for a kind.
    type: list
    elements: dict
    suboptions:
      kind:
        description:
          - A kind of disk, including disks that are attached later. V(ebs) and V(instance_store) are NVMe devices of
            that model, V(xvd) are disks of Xen's front end, V(virtio) those of virtio_blk.
        type: str
        choices: [ebs, instance_store, xvd, virtio, other]
      device:
        description:
          - A disk, a partition, or a RAID or LVM device with all its members, by a path below C(/dev).
        type: str
      mount:
        description:
          - The disks of the file system that is mounted there, through RAID, LVM, encryption and btrfs.
        type: str
      io_timeout:
        description: Like O(io_timeout).
        type: str
      scheduler:
        description: Like O(scheduler).
        type: str
      read_ahead_kb:
        description: Like O(read_ahead_kb).
        type: int
      nr_requests:
        description: Like O(nr_requests).
        type: int
      nomerges:
        description: Like O(nomerges).
        type: int
        choices: [0, 1, 2]
      rq_affinity:
        description: Like O(rq_affinity).
        type: int
        choices: [0, 1, 2]
      max_sectors_kb:
        description: Like O(max_sectors_kb).
        type: int
      write_cache:
        description:
          - Whether the kernel believes that the disk has a volatile cache; only with O(disks[].device) or
            O(disks[].mount).
          - V(write_through) never tells the disk to write its cache out. Where a cache has no battery, what it holds is
            lost when the power fails. V(write_back) is refused by Linux 6.6 and newer for a disk without a cache.
        type: str
        choices: [write_back, write_through]
  indirect_segments:
    description:
      - How many pages a request to a disk of Xen's front end may have, from the next boot on; V(0) takes it back.
      - It is the kernel argument C(xen_blkfront.max_indirect_segments=) (C(xen_blkfront.max=) before Linux 4.6). AWS
        advises V(256) for st1 and sc1 volumes. The smaller number of the two ends counts.
    type: int
  poll_queues:
    description:
      - How many queues of each NVMe disk are polled instead of interrupting, from the next boot on; V(0) takes it back.
      - It is the kernel argument C(nvme.poll_queues=). It is refused without instance store, and on burstable types.
    type: int
  method:
    description:
      - How O(io_timeout) is set for EBS; V(runtime) writes to each disk's queue, V(boot) adds the kernel argument
        C(nvme_core.io_timeout=) instead, V(both) does both.
      - V(runtime) needs no reboot. The argument of V(boot) applies to every NVMe disk. Kernels before Linux 5.0 know no
        other way.
      - This module never reboots the host.
    type: str
    choices: [runtime, boot, both]
    default: runtime
  persist:
    description:
      - Whether disks are set again whenever they appear, at boot or later.
      - Rules in C(/etc/udev/rules.d) set options of all disks or of a kind. C(nearmetal.service) sets those of a device
        or mount point, whose disks it looks up again.
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
- name: Wait for EBS as long as it takes, and use no scheduler
  nearmetal.ec2.block_storage:
    io_timeout: aws
    scheduler: none

- name: A database on instance store, backups on EBS
  nearmetal.ec2.block_storage:
    io_timeout: aws
    disks:
      - kind: instance_store
        scheduler: none
        nomerges: 2
        rq_affinity: 2
      - kind: ebs
        read_ahead_kb: 1024

- name: Read far ahead on the array below /data
  nearmetal.ec2.block_storage:
    disks:
      - mount: /data
        read_ahead_kb: 4096

- name: Take it back
  nearmetal.ec2.block_storage:
    state: restored
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

main = main_of("block_storage")

if __name__ == "__main__":
    main()
