#!/usr/bin/python
# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the kernel moves memory between NUMA nodes, and which services stay on one."""

from __future__ import annotations

DOCUMENTATION = r"""
module: numa
short_description: Choose what a Linux host on EC2 does with its NUMA nodes
version_added: 0.1.0
description:
  - Binds services to nodes, switches automatic NUMA balancing, sets C(vm.zone_reclaim_mode), and hides nodes where that
    is asked for twice.
  - Tells when much memory was taken by CPUs of another node.
  - A host of one node has nothing to decide; that is C(not_applicable).
options:
  balancing:
    description:
      - V(disabled) leaves memory where it was taken, for software that binds its threads itself.
      - V(enabled) lets the kernel move memory to the node whose CPUs use it. V(kernel) is the same, not
        written down, unless the kernel's command line has C(numa_balancing=disable).
      - Left out, as every option here, it is unmanaged, and what an earlier run had set is taken back.
    type: str
    choices: [kernel, enabled, disabled]
  zone_reclaim_mode:
    description: C(vm.zone_reclaim_mode), V(0) unless you know that file cache may go before another node is asked.
    type: int
  nodes:
    description:
      - V(hidden) puts C(numa=off) among the kernel arguments. It needs O(allow_hidden_nodes), because binding
        or interleaving is nearly always better. It takes a reboot.
      - V(kernel) takes that argument back.
    type: str
    choices: [kernel, hidden]
  services:
    description:
      - Services and the nodes that their CPUs and memory come from. systemd makes their drop-ins with
        C(NUMAPolicy=), C(NUMAMask=) and C(CPUAffinity=) at each boot and reload, for the nodes that the host has then.
      - No service is restarted. A service whose main process runs elsewhere gets a finding C(needs_restart), until
        C(/proc/PID/numa_maps) and C(Cpus_allowed_list) show the binding.
      - It takes systemd 243, or RHEL 8. Older ones are C(refused), with the line to add by hand.
    type: list
    elements: dict
    suboptions:
      unit:
        description: The full name of the unit, such as C(postgresql.service).
        type: str
        required: true
      nodes:
        description: Nodes as the kernel lists them, such as V(1) or V(0-1).
        type: str
      near_interface:
        description: The node of this interface's device, asked of the kernel at each boot.
        type: str
      near_device:
        description: The node of this NVMe controller (C(nvme1)) or PCI address (C(0000:00:1f.0)).
        type: str
      policy:
        description:
          - V(bind) fails an allocation that the nodes can't hold, V(preferred) takes one node first,
            V(interleave) spreads memory over the nodes. CPUs are those of the nodes with each.
        type: str
        choices: [bind, preferred, interleave]
        default: bind
  persist:
    description: Whether O(balancing) and O(zone_reclaim_mode) are set again at each boot, by C(/etc/sysctl.d).
    type: bool
    default: true
  allow_hidden_nodes:
    description: Hide the nodes although memory is no more local then.
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
- name: Leave memory where it was taken
  nearmetal.ec2.numa:
    balancing: disabled

- name: Keep a database on the second node, and the proxy near its NIC
  nearmetal.ec2.numa:
    balancing: disabled
    services:
      - unit: postgresql.service
        nodes: "1"
      - unit: haproxy.service
        near_interface: ens5
        policy: preferred

- name: Take it back
  nearmetal.ec2.numa:
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
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.numa import CONCERN
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost


def main(host: WritableHost | None = None) -> None:
    """Plan and do the concern on `host`, by default this machine."""
    state_module(CONCERN, host)


if __name__ == "__main__":
    main()
